/* One record of a listing: "<size> <mtime> <ctime> <path>". */
#ifndef LISTING_RECORD_H
#define LISTING_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

#define SBX_RECORD_BAD_TIME 1u /* a time was no time: to be refused as bad-time */
#define SBX_RECORD_CONFLICT 2u /* listed twice with other facts: to be refused as alias */
#define SBX_RECORD_YOUNG 4u    /* may change again within the second of its ctime */

/* A listed file, 48 bytes: memory per record is a promise. */
struct sbx_record {
    const char *path; /* bytes, relative to the root; borrowed, see who filled it in */
    uint64_t size;    /* bytes, at most INT64_MAX */
    struct sbx_time mtime;
    struct sbx_time ctime;
    uint32_t path_len;
    uint32_t flags; /* SBX_RECORD_… */
};

/* Parses one record without its NUL; the path is borrowed from `bytes`. A time that is none sets
 * SBX_RECORD_BAD_TIME; unsigned times from 2^63 up are the negative ones that toybox prints.
 * SBX_E_REMOTE: no size, a size out of range, a missing separator: the listing is damaged. */
SBX_MUST_CHECK enum sbx_status sbx_list_record_parse(const char *bytes, size_t n,
                                                     struct sbx_record *ret, struct sbx_error *err);

/* The decimal number, digits only, that fills bytes[0..n). False, *ret untouched: there is none. */
bool sbx_list_number(const char *bytes, size_t n, uint64_t *ret);

/* Byte order of paths, as memcmp, the shorter first: the order of everything in a pass. */
int sbx_list_path_cmp(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
