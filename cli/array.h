/* For arrays whose length is that of their initialiser. */
#ifndef CLI_ARRAY_H
#define CLI_ARRAY_H

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#endif
