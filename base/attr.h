/* Compiler attributes of internal code; the public ones are in <sbx/export.h>. */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include "sbx/export.h"

/* Runs fn(&variable) when the variable goes out of scope. */
#define SBX_CLEANUP(fn) __attribute__((cleanup(fn)))
#define SBX_UNUSED __attribute__((unused))
#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

#endif
