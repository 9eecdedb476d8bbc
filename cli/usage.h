/* The text of --help. */
#ifndef CLI_USAGE_H
#define CLI_USAGE_H

extern const char sbx_cli_usage[];

#endif
