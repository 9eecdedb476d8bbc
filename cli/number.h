/* Numbers as a user types them, digit by digit: no sign, no blank, no exponent, no locale. */
#ifndef CLI_NUMBER_H
#define CLI_NUMBER_H

#include <stdint.h>

enum sbx_cli_number {
    SBX_CLI_NUMBER_OK = 0,
    SBX_CLI_NUMBER_JUNK,  /* empty, or something else than a number of this kind */
    SBX_CLI_NUMBER_LARGE, /* does not fit */
};

/* A whole number. */
enum sbx_cli_number sbx_cli_count(const char *text, uint64_t *ret);

/* Bytes: a whole number, and k, K, M or G for powers of 1024 or kB, KB, MB or GB for powers of
 * 1000. */
enum sbx_cli_number sbx_cli_size(const char *text, uint64_t *ret);

/* Seconds: digits, and a point and more digits if wanted. */
enum sbx_cli_number sbx_cli_seconds(const char *text, double *ret);

#endif
