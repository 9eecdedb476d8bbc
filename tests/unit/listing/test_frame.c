#include "listing/frame.h"

#include <string.h>

#include "tests/support/rows.h"

#define N_ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))
#define BEGIN "v=1 root=ok now=1 tools="

static const struct begin_row {
    const char *why;
    const char *text;
    const char *message; /* NULL: accepted */
} begin_rows[] = {
    {"the line of the script", "v=1 root=ok now=1 tools=printf,gzip,base64", NULL},
    {"the keys in another order", "tools=stat,plain,hex now=1 root=denied v=1", NULL},
    {"blanks too many", " v=1  root=ok now=1 tools=printf,gzip,base64 ", NULL},
    {"a clock before 1970", "v=1 root=ok now=-1 tools=printf,gzip,base64", NULL},
    {"another version", "v=2 root=ok now=1 tools=printf,gzip,base64", "unknown version"},
    {"no version", "root=ok now=1 tools=printf,gzip,base64", "without 'v='"},
    {"no root", "v=1 now=1 tools=printf,gzip,base64", "without 'root='"},
    {"no clock", "v=1 root=ok tools=printf,gzip,base64", "without 'now='"},
    {"no tools", "v=1 root=ok now=1", "without 'tools='"},
    {"a cut line", "v=1 root=ok now=1 tools=printf,gz", "unknown remote tools"},
    {"a key twice", "v=1 v=1 root=ok now=1 tools=printf,gzip,base64", "'v' is not expected"},
    {"an unknown key", BEGIN "printf,gzip,base64 x=1", "'x' is not expected"},
    {"an empty key", BEGIN "printf,gzip,base64 =1", "'' is not expected"},
    {"an unknown state of the root", "v=1 root=yes now=1 tools=printf,gzip,base64", "of the root"},
    {"date is not there", "v=1 root=ok now= tools=printf,gzip,base64", "tool missing: date"},
    {"a clock that is no number", "v=1 root=ok now=1x tools=printf,gzip,base64", "no time"},
    {"a clock beyond 64 bits", "v=1 root=ok now=9223372036854775808 tools=printf,gzip,base64",
     "no time"},
    {"an unknown walk", BEGIN "ls,gzip,base64", "unknown remote tools"},
    {"an unknown packer", BEGIN "stat,xz,base64", "unknown remote tools"},
    {"an unknown coding", BEGIN "stat,gzip,base32", "unknown remote tools"},
    {"more than three tools", BEGIN "stat,gzip,hex,hex", "unknown remote tools"},
    {"tools longer than any", BEGIN "stat,gzip,hexxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "unknown remote tools"},
    {"text of the peer is escaped", BEGIN "\x1b[2J", "'\\x1b[2J'"},
    {"an empty line", "", "without 'v='"},
};

static void check_begin(void **state)
{
    const struct begin_row *row = *state;
    struct sbx_list_frame frame = {.now = 77};
    struct sbx_error err = {0};
    enum sbx_status st = sbx_list_frame_begin(&frame, row->text, strlen(row->text), &err);

    if (!row->message) {
        assert_int_equal(st, SBX_OK);
        assert_int_not_equal(frame.root, SBX_ROOT_UNKNOWN);
        return;
    }
    assert_int_equal(st, SBX_E_REMOTE);
    assert_non_null(strstr(err.msg, row->message));
    assert_int_equal(frame.now, 77);
    assert_int_equal(frame.root, SBX_ROOT_UNKNOWN);
}

#define PRINTF "v=1 root=ok now=1 tools=printf,gzip,base64"
#define STAT "v=1 root=ok now=1 tools=stat,plain,hex"

static const struct end_row {
    const char *why;
    const char *begin;
    const char *text;
    const char *message; /* NULL: accepted */
} end_rows[] = {
    {"all went well", PRINTF, "find=0 cap=0 pack=0 encode=0", NULL},
    {"the keys in another order", PRINTF, "encode=0 pack=0 find=0 cap=0", NULL},
    {"with a count of links", PRINTF, "skipped=12 find=0 cap=0 pack=0 encode=0", NULL},
    {"find met an unreadable directory", PRINTF, "find=1 cap=0 pack=0 encode=0", NULL},
    {"stat: all went well", STAT, "walk=0 find=0 cap=0 pack=0 encode=0", NULL},
    {"stat: a file vanished", STAT, "walk=0 find=123 cap=0 pack=0 encode=0", NULL},
    {"stat: an unreadable directory", STAT, "walk=1 find=0 cap=0 pack=0 encode=0", NULL},
    {"an empty line", PRINTF, "", "without 'find='"},
    {"no status of find", PRINTF, "cap=0 pack=0 encode=0", "without 'find='"},
    {"no status of head", PRINTF, "find=0 pack=0 encode=0", "without 'cap='"},
    {"no status of gzip", PRINTF, "find=0 cap=0 encode=0", "without 'pack='"},
    {"no status of base64", PRINTF, "find=0 cap=0 pack=0", "without 'encode='"},
    {"stat: no status of find", STAT, "find=0 cap=0 pack=0 encode=0", "without 'walk='"},
    {"a walk where there is none", PRINTF, "walk=0 find=0 cap=0 pack=0 encode=0", "with 'walk='"},
    {"a status twice", PRINTF, "find=0 find=0 cap=0 pack=0 encode=0", "'find' is not expected"},
    {"an unknown key", PRINTF, "find=0 cap=0 pack=0 encode=0 x=0", "'x' is not expected"},
    {"a word without a value", PRINTF, "find cap=0 pack=0 encode=0", "no exit status"},
    {"a status that is no number", PRINTF, "find=0x0 cap=0 pack=0 encode=0", "no exit status"},
    {"a negative status", PRINTF, "find=-1 cap=0 pack=0 encode=0", "no exit status"},
    {"find failed", PRINTF, "find=2 cap=0 pack=0 encode=0", "find ended with status 2"},
    {"find status 123", PRINTF, "find=123 cap=0 pack=0 encode=0", "find ended with status 123"},
    {"a status that would wrap to 1", PRINTF, "find=4294967297 cap=0 pack=0 encode=0",
     "status 4294967297"},
    {"stat: xargs status 1", STAT, "walk=0 find=1 cap=0 pack=0 encode=0", "ended with status 1"},
    {"stat: find was killed", STAT, "walk=137 find=0 cap=0 pack=0 encode=0", "status 137"},
    {"head failed", PRINTF, "find=0 cap=1 pack=0 encode=0", "remote head ended with status 1"},
    {"gzip failed", PRINTF, "find=0 cap=0 pack=1 encode=0", "remote gzip ended with status 1"},
    {"cat failed", STAT, "walk=0 find=0 cap=0 pack=1 encode=0", "remote cat ended with status 1"},
    {"base64 failed", PRINTF, "find=0 cap=0 pack=0 encode=1", "remote base64 ended with status 1"},
    {"find is missing", PRINTF, "find=127 cap=0 pack=0 encode=0", "tool missing: find"},
    {"stat: find is missing", STAT, "walk=127 find=0 cap=0 pack=0 encode=0", "tool missing: find"},
    {"stat: xargs is missing", STAT, "walk=0 find=127 cap=0 pack=0 encode=0",
     "tool missing: xargs or stat"},
    {"stat is missing, so that nothing walked", STAT, "find=127 cap=0 pack=0 encode=0",
     "tool missing: xargs or stat"},
    {"head is missing", PRINTF, "find=0 cap=127 pack=0 encode=0", "tool missing: head"},
    {"gzip is missing", PRINTF, "find=0 cap=0 pack=127 encode=0", "tool missing: gzip"},
    {"cat is missing", STAT, "walk=0 find=0 cap=0 pack=127 encode=0", "tool missing: cat"},
    {"base64 is missing", PRINTF, "find=0 cap=0 pack=0 encode=127", "tool missing: base64"},
    {"base64 is missing, and those before it fail by that", PRINTF,
     "find=1 cap=1 pack=1 encode=127", "tool missing: base64"},
    {"od is missing", STAT, "walk=0 find=0 cap=0 pack=0 encode=127", "tool missing: od"},
    {"a bad count of links", PRINTF, "skipped=-1 find=0 cap=0 pack=0 encode=0", "'skipped='"},
};

static void check_end(void **state)
{
    const struct end_row *row = *state;
    struct sbx_list_frame frame = {.now = 0};
    struct sbx_error err = {0};
    enum sbx_status st;

    assert_int_equal(sbx_list_frame_begin(&frame, row->begin, strlen(row->begin), NULL), SBX_OK);
    frame.find = 99;
    st = sbx_list_frame_end(&frame, row->text, strlen(row->text), &err);
    assert_int_equal(frame.find == 99, row->message != NULL); /* untouched */
    if (!row->message) {
        assert_int_equal(st, SBX_OK);
        return;
    }
    assert_int_equal(st, SBX_E_REMOTE);
    assert_non_null(strstr(err.msg, row->message));
}

int main(void)
{
    struct CMUnitTest tests[128];
    size_t n = 0;

    n = rows_add(tests, n, ROWS(begin_rows), check_begin);
    n = rows_add(tests, n, ROWS(end_rows), check_end);
    return rows_run("listing frame", tests, n);
}
