/* Several small files through one pipeline, since a process for each would cost more than its
 * bytes.
 *
 * The payload of a group is the records of its files, a marker, their contents one after another, a
 * marker, and the records once more. Where one file ends and the next begins is known only from the
 * listed sizes, so it is proved before anything is made of it: the records before and after are
 * equal to the byte, there is one for each file, each begins with the listed size, and the contents
 * have exactly the length of all. Then no file was another one, or longer or shorter, while it was
 * read. If anything is amiss each file is asked for by itself. */
#ifndef TRANSPORT_EXEC_GROUP_H
#define TRANSPORT_EXEC_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sbx/transport.h"

/* How many files from files[at] on go through one pipeline: at least 1, which means by itself. Both
 * the script and its reader ask this, so that they agree. files[0..singles) go by themselves. */
size_t sbx_exec_group(const struct sbx_wanted *const files[], size_t n, size_t singles, size_t at);

/* Bytes that the payload of files[0..count) may have at most. */
size_t sbx_exec_group_max(const struct sbx_wanted *const files[], size_t count);

/* Where the parts of a payload are; borrowed from it. */
struct sbx_exec_payload {
    const char *records; /* one for each file, each ended by NUL */
    const char *content; /* of all files */
};

/* Takes the payload apart; false if it does not prove what is said above. */
bool sbx_exec_group_prove(const char *payload, size_t n, const char *marker, size_t marker_len,
                          const struct sbx_wanted *const files[], size_t count,
                          struct sbx_exec_payload *ret);

#endif
