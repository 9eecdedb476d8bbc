/* Text for a terminal: printable ASCII whatever goes in, and bounded. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Room for a name in a line, the terminating NUL included. */
#define SBX_CLI_NAME_MAX 256
#define SBX_CLI_SIZE_MAX 16

/* Writes bytes of an argument or a name: a backslash becomes `\\`, all but printable ASCII `\xHH`;
 * what does not fit is cut and ends in "...". Returns out. */
const char *sbx_cli_quote(char out[SBX_CLI_NAME_MAX], const char *text);

/* Writes text that is escaped already; one too long loses its middle to "...", never half of an
 * escape. Returns out. */
const char *sbx_cli_shorten(char out[SBX_CLI_NAME_MAX], const char *escaped);

/* Writes bytes as "0 B", "999 B", "1.0 kB", "2.3 GB" (powers of 1000). Returns out. */
const char *sbx_cli_bytes(char out[SBX_CLI_SIZE_MAX], uint64_t bytes);

/* Writes seconds as "0:07", "12:34" or "1:02:03". Returns out. */
const char *sbx_cli_duration(char out[SBX_CLI_SIZE_MAX], uint64_t seconds);

/* In a call's arguments: an array of the enclosing block. */
#define SBX_CLI_QUOTE(text) sbx_cli_quote((char[SBX_CLI_NAME_MAX]){0}, (text))
#define SBX_CLI_SHORTEN(text) sbx_cli_shorten((char[SBX_CLI_NAME_MAX]){0}, (text))
#define SBX_CLI_BYTES(bytes) sbx_cli_bytes((char[SBX_CLI_SIZE_MAX]){0}, (bytes))

#endif
