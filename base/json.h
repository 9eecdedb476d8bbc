/* The one wrapper of jansson: building, writing and strictly reading JSON. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/error.h"

/* A JSON value. Members keep the order in which they were added. */
struct sbx_json;

#define SBX_JSON_AUTO SBX_CLEANUP(sbx_json_freep)

/* NULL where memory is refused. */
struct sbx_json *sbx_json_object(void);
struct sbx_json *sbx_json_array(void);
void sbx_json_freep(struct sbx_json **json); /* may be called twice */

/* Adding to an object (key not NULL) or an array (key NULL). Failures are remembered by the
 * value and told by sbx_json_write(), so that a builder reads as a list. */
void sbx_json_add_str(struct sbx_json *to, const char *key, const char *text);
/* Bytes that must be UTF-8 (else remembered as a failure); NUL may be among them. */
void sbx_json_add_bytes(struct sbx_json *to, const char *key, const char *bytes, size_t n);
void sbx_json_add_uint(struct sbx_json *to, const char *key, uint64_t value);
void sbx_json_add_bool(struct sbx_json *to, const char *key, bool value);
void sbx_json_add_null(struct sbx_json *to, const char *key);
/* Takes *child over and sets it to NULL. */
void sbx_json_add(struct sbx_json *to, const char *key, struct sbx_json **take_child);

/* Appends the value as compact ASCII. SBX_E_NOMEM also for a failure while it was built. */
SBX_MUST_CHECK enum sbx_status sbx_json_write(const struct sbx_json *json, struct sbx_buf *out,
                                              struct sbx_error *err);

/* Parses one value that fills text[0..n): no duplicate keys, depth at most 32 (checked before
 * jansson sees the text). SBX_E_REMOTE: not such JSON. Free with sbx_json_freep(). */
SBX_MUST_CHECK enum sbx_status sbx_json_parse(const char *text, size_t n, struct sbx_json **ret,
                                              struct sbx_error *err);
/* Looking up a member of a parsed object; false if it is missing or of another type, then ret is
 * untouched. Strings are borrowed from the object. */
bool sbx_json_get_str(const struct sbx_json *json, const char *key, const char **ret,
                      size_t *ret_n);
bool sbx_json_get_uint(const struct sbx_json *json, const char *key, uint64_t *ret);
bool sbx_json_get_bool(const struct sbx_json *json, const char *key, bool *ret);
/* A member that is itself an object, as a value of its own; false also where memory is refused.
 * Free it with sbx_json_freep(). */
bool sbx_json_get_object(const struct sbx_json *json, const char *key, struct sbx_json **ret);
/* Element i of a member that is an array, if it is a string. */
bool sbx_json_get_element_str(const struct sbx_json *json, const char *key, size_t i,
                              const char **ret, size_t *ret_n);
/* Member i of an object that was parsed, in the order of the text, if it is a string: its key
 * (terminated) and its value. */
bool sbx_json_get_member_str(const struct sbx_json *json, size_t i, const char **ret_key,
                             const char **ret, size_t *ret_n);
size_t sbx_json_members(const struct sbx_json *json);
/* The members of a parsed object or array: how many, and whether a key is among them. */
bool sbx_json_has(const struct sbx_json *json, const char *key);

#endif
