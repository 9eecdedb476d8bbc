#include "sync/options.h"

#include <string.h>

#include "base/limits.h"

static void default_u64(uint64_t *value, uint64_t standard)
{
    if (*value == 0)
        *value = standard;
}

static void default_seconds(double *value, double standard)
{
    if (!(*value > 0 || *value < 0))
        *value = standard;
}

static enum sbx_status check_seconds(double s, const char *what, struct sbx_error *err)
{
    if (s >= 0 && s <= SBX_CEIL_SECONDS) /* false for NaN too */
        return SBX_OK;
    return sbx_err_set(err, SBX_E_USAGE, 0, "%s is not between 0 and %.0f seconds", what,
                       SBX_CEIL_SECONDS);
}

static enum sbx_status check_u64(uint64_t value, uint64_t most, const char *what,
                                 struct sbx_error *err)
{
    if (value <= most)
        return SBX_OK;
    return sbx_err_set(err, SBX_E_USAGE, 0, "%s is larger than %llu", what,
                       (unsigned long long)most);
}

static enum sbx_status check(const struct sbx_options *o, struct sbx_error *err)
{
    enum sbx_status st = check_seconds(o->deadline_s, "deadline", err);

    if (!st)
        st = check_seconds(o->wait_s, "wait", err);
    if (!st)
        st = check_seconds(o->idle_s, "idle limit", err);
    if (!st)
        st = check_u64(o->max_records, SBX_CEIL_RECORDS, "the record limit", err);
    if (!st)
        st = check_u64(o->max_directories, SBX_CEIL_RECORDS, "the directory limit", err);
    if (!st)
        st = check_u64(o->max_listing, SBX_CEIL_LISTING, "the listing limit", err);
    if (!st)
        st = check_u64(o->jobs, SBX_MAX_JOBS, "the number of jobs", err);
    return st;
}

enum sbx_status sbx_sync_options(const struct sbx_options *in, struct sbx_options *ret,
                                 struct sbx_error *err)
{
    struct sbx_options o = *in;
    enum sbx_status st;

    if (in->version != SBX_OPTIONS_VERSION)
        return sbx_err_set(err, SBX_E_USAGE, 0, "options of version %u, this library has %u",
                           in->version, SBX_OPTIONS_VERSION);
    if (!in->dest || !*in->dest)
        return sbx_err_set(err, SBX_E_USAGE, 0, "no destination directory");
    default_u64(&o.max_records, SBX_MAX_RECORDS);
    default_u64(&o.max_directories, SBX_MAX_DIRECTORIES);
    default_u64(&o.max_listing, SBX_MAX_LISTING);
    default_u64(&o.max_files, SBX_MAX_FILES);
    default_u64(&o.max_file_size, SBX_MAX_FILE_SIZE);
    default_u64(&o.max_bytes, SBX_MAX_BYTES);
    default_u64(&o.report_limit, SBX_REPORT_LIMIT);
    default_seconds(&o.deadline_s, SBX_DEADLINE_S);
    default_seconds(&o.idle_s, SBX_IDLE_S);
    if (o.jobs == 0)
        o.jobs = SBX_JOBS;
    if (o.report_none)
        o.report_limit = 0;
    st = check(&o, err);
    if (st)
        return st;
    *ret = o;
    return SBX_OK;
}
