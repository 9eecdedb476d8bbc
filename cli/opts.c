#include "cli/opts.h"

#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/array.h"
#include "cli/number.h"
#include "cli/text.h"

#define LONG_BASE 256 /* getopt's value of row 0: above every letter */

struct row;
typedef enum sbx_status take_fn(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                struct sbx_error *err);

/* An option: how its value is read, and the member that takes it. */
struct row {
    const char *name;
    char letter; /* 0: none */
    bool has_value;
    take_fn *take;
    size_t offset;
    uint64_t min;             /* of a number */
    const char *const *words; /* of a choice, by value of the enum; NULL ends them */
    int constant;             /* what take_constant stores */
};

static enum sbx_status usage(struct sbx_error *err, const char *fmt, ...) SBX_PRINTF(2, 3);

static enum sbx_status usage(struct sbx_error *err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    err->status = SBX_E_USAGE;
    return SBX_E_USAGE;
}

static void *member(struct sbx_cli_opts *o, const struct row *row)
{
    return (char *)o + row->offset;
}

static enum sbx_status take_flag(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                 struct sbx_error *err)
{
    (void)value;
    (void)err;
    *(bool *)member(o, row) = true;
    return SBX_OK;
}

static enum sbx_status take_progress(struct sbx_cli_opts *o, const struct row *row,
                                     const char *value, struct sbx_error *err)
{
    (void)value;
    (void)err;
    o->progress = (enum sbx_cli_progress_mode)row->constant;
    return SBX_OK;
}

/* The message for a number that was not taken; `kind` says what one looks like. */
static enum sbx_status bad_number(const struct row *row, const char *value,
                                  enum sbx_cli_number result, const char *kind,
                                  struct sbx_error *err)
{
    if (result == SBX_CLI_NUMBER_LARGE)
        return usage(err, "--%s: '%s' is too large", row->name, SBX_CLI_QUOTE(value));
    return usage(err, "--%s: '%s' is not %s", row->name, SBX_CLI_QUOTE(value), kind);
}

static enum sbx_status take_count(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                  struct sbx_error *err)
{
    enum sbx_cli_number result;
    uint64_t count = 0;

    result = sbx_cli_count(value, &count);
    if (!result && count < row->min)
        return usage(err, "--%s: '%s' is too small", row->name, SBX_CLI_QUOTE(value));
    if (result)
        return bad_number(row, value, result, "a whole number", err);
    *(uint64_t *)member(o, row) = count;
    return SBX_OK;
}

static enum sbx_status take_jobs(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                 struct sbx_error *err)
{
    enum sbx_cli_number result;
    uint64_t count = 0;

    result = sbx_cli_count(value, &count);
    if (!result && count > UINT_MAX)
        result = SBX_CLI_NUMBER_LARGE;
    if (!result && count == 0)
        return usage(err, "--%s: '%s' is too small", row->name, SBX_CLI_QUOTE(value));
    if (result)
        return bad_number(row, value, result, "a whole number", err);
    o->pass.jobs = (unsigned)count;
    return SBX_OK;
}

/* To the library a limit of 0 means its default; to a user it means no names at all. */
static enum sbx_status take_report_limit(struct sbx_cli_opts *o, const struct row *row,
                                         const char *value, struct sbx_error *err)
{
    enum sbx_status st = take_count(o, row, value, err);

    o->pass.report_none = o->pass.report_limit == 0;
    return st;
}

static enum sbx_status take_size(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                 struct sbx_error *err)
{
    enum sbx_cli_number result;
    uint64_t size = 0;

    result = sbx_cli_size(value, &size);
    if (!result && size < row->min)
        return usage(err, "--%s: '%s' is too small", row->name, SBX_CLI_QUOTE(value));
    if (result)
        return bad_number(row, value, result, "a size such as 4096, 64k, 10M, 2G or 100MB", err);
    *(uint64_t *)member(o, row) = size;
    return SBX_OK;
}

static enum sbx_status take_seconds(struct sbx_cli_opts *o, const struct row *row,
                                    const char *value, struct sbx_error *err)
{
    enum sbx_cli_number result;
    double seconds = 0;

    result = sbx_cli_seconds(value, &seconds);
    if (!result && row->min && !(seconds > 0))
        return usage(err, "--%s: '%s' is too small", row->name, SBX_CLI_QUOTE(value));
    if (result)
        return bad_number(row, value, result, "a number of seconds such as 90 or 0.5", err);
    *(double *)member(o, row) = seconds;
    return SBX_OK;
}

static enum sbx_status take_text(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                 struct sbx_error *err)
{
    if (!*value)
        return usage(err, "--%s: '' is empty", row->name);
    *(const char **)member(o, row) = value;
    return SBX_OK;
}

static enum sbx_status choose(const struct row *row, const char *value, int *ret,
                              struct sbx_error *err)
{
    char list[64] = "";
    size_t n = 0;

    for (int i = 0; row->words[i]; i++) {
        if (strcmp(value, row->words[i]) == 0) {
            *ret = i;
            return SBX_OK;
        }
        n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", row->words[i]);
    }
    return usage(err, "--%s: '%s' is not one of %s", row->name, SBX_CLI_QUOTE(value), list);
}

static enum sbx_status take_names(struct sbx_cli_opts *o, const struct row *row, const char *value,
                                  struct sbx_error *err)
{
    int i = 0;
    enum sbx_status st = choose(row, value, &i, err);

    o->pass.names = (enum sbx_names)i;
    return st;
}

static enum sbx_status take_durability(struct sbx_cli_opts *o, const struct row *row,
                                       const char *value, struct sbx_error *err)
{
    int i = 0;
    enum sbx_status st = choose(row, value, &i, err);

    o->pass.durability = (enum sbx_durability)i;
    return st;
}

static enum sbx_status take_exclude(struct sbx_cli_opts *o, const struct row *row,
                                    const char *value, struct sbx_error *err)
{
    if (!*value)
        return usage(err, "--%s: '' is empty", row->name);
    if (o->pass.n_exclude == SBX_CLI_MAX_EXCLUDE)
        return usage(err, "--%s: more than %d patterns", row->name, SBX_CLI_MAX_EXCLUDE);
    o->exclude[o->pass.n_exclude++] = value;
    return SBX_OK;
}

static const char *const names_words[] = {
    [SBX_NAMES_PORTABLE] = "portable", [SBX_NAMES_POSIX] = "posix", NULL};
static const char *const durability_words[] = {[SBX_DURABILITY_BATCH] = "batch",
                                               [SBX_DURABILITY_FULL] = "full",
                                               [SBX_DURABILITY_NONE] = "none",
                                               NULL};

#define AT(m) offsetof(struct sbx_cli_opts, m)

static const struct row rows[] = {
    {"help", 'h', false, take_flag, AT(help), 0, NULL, 0},
    {"version", 0, false, take_flag, AT(version), 0, NULL, 0},
    {"json", 0, false, take_flag, AT(json), 0, NULL, 0},
    {"quiet", 'q', false, take_flag, AT(quiet), 0, NULL, 0},
    {"verbose", 'v', false, take_flag, AT(verbose), 0, NULL, 0},
    {"progress", 0, false, take_progress, 0, 0, NULL, SBX_CLI_PROGRESS_ON},
    {"no-progress", 0, false, take_progress, 0, 0, NULL, SBX_CLI_PROGRESS_OFF},
    {"dry-run", 0, false, take_flag, AT(pass.dry_run), 0, NULL, 0},
    {"no-confirm", 0, false, take_flag, AT(pass.no_confirm), 0, NULL, 0},
    {"allow-changing", 0, false, take_flag, AT(pass.allow_changing), 0, NULL, 0},
    {"ignore-ctime", 0, false, take_flag, AT(pass.ignore_ctime), 0, NULL, 0},
    {"max-records", 0, true, take_count, AT(pass.max_records), 1, NULL, 0},
    {"max-listing", 0, true, take_size, AT(pass.max_listing), 1, NULL, 0},
    {"max-files", 0, true, take_count, AT(pass.max_files), 1, NULL, 0},
    {"max-file-size", 0, true, take_size, AT(pass.max_file_size), 1, NULL, 0},
    {"max-bytes", 0, true, take_size, AT(pass.max_bytes), 1, NULL, 0},
    {"deadline", 0, true, take_seconds, AT(pass.deadline_s), 1, NULL, 0},
    {"wait", 0, true, take_seconds, AT(pass.wait_s), 0, NULL, 0},
    {"jobs", 0, true, take_jobs, 0, 0, NULL, 0},
    {"report-limit", 0, true, take_report_limit, AT(pass.report_limit), 0, NULL, 0},
    {"cacert", 0, true, take_text, AT(cacert), 0, NULL, 0},
    {"identity", 0, true, take_text, AT(pass.identity), 0, NULL, 0},
    {"exclude", 0, true, take_exclude, 0, 0, NULL, 0},
    {"names", 0, true, take_names, 0, 0, names_words, 0},
    {"durability", 0, true, take_durability, 0, 0, durability_words, 0},
};

/* The row of a value that getopt gave; NULL if it was none of ours. */
static const struct row *row_of(int value)
{
    if (value >= LONG_BASE)
        return &rows[value - LONG_BASE];
    for (size_t i = 0; i < N_ELEMENTS(rows); i++)
        if (rows[i].letter && rows[i].letter == value)
            return &rows[i];
    return NULL;
}

static void long_options(struct option ret[N_ELEMENTS(rows) + 1])
{
    for (size_t i = 0; i < N_ELEMENTS(rows); i++)
        ret[i] = (struct option){.name = rows[i].name,
                                 .has_arg = rows[i].has_value ? required_argument : no_argument,
                                 .val = LONG_BASE + (int)i};
    ret[N_ELEMENTS(rows)] = (struct option){.name = NULL};
}

/* getopt's own message would bring the argument to the terminal as it is. */
static enum sbx_status bad_option(int result, char **argv, struct sbx_error *err)
{
    const struct row *row = optopt ? row_of(optopt) : NULL;
    char letter[2] = {(char)optopt, '\0'};

    if (result == ':')
        return usage(err, "--%s needs a value", row ? row->name : "?");
    if (row)
        return usage(err, "--%s takes no value", row->name);
    if (optopt)
        return usage(err, "unknown option '-%s'", SBX_CLI_QUOTE(letter));
    return usage(err, "unknown or ambiguous option '%s'", SBX_CLI_QUOTE(argv[optind - 1]));
}

static enum sbx_status operand(struct sbx_cli_opts *o, const char *value, struct sbx_error *err)
{
    if (!*value)
        return usage(err, "%s is empty", o->source ? "DEST" : "SOURCE");
    if (!o->source)
        o->source = value;
    else if (!o->pass.dest)
        o->pass.dest = value;
    else
        return usage(err, "unexpected operand '%s': a COMMAND goes after '--'",
                     SBX_CLI_QUOTE(value));
    return SBX_OK;
}

/* What can be said only once everything was read. */
static enum sbx_status check(const struct sbx_cli_opts *o, struct sbx_error *err)
{
    if (!o->source)
        return usage(err, "missing SOURCE and DEST%s", o->command ? " before '--'" : "");
    if (!o->pass.dest)
        return usage(err, "missing DEST after SOURCE '%s'", SBX_CLI_QUOTE(o->source));
    if (strncmp(o->source, "exec:", 5) == 0 && !o->command)
        return usage(err,
                     "exec: needs a COMMAND that leads to a shell, such as: "
                     "sbx-sync %s %s -- docker exec -i BOX sh",
                     SBX_CLI_QUOTE(o->source), SBX_CLI_QUOTE(o->pass.dest));
    return SBX_OK;
}

enum sbx_status sbx_cli_opts_parse(struct sbx_cli_opts *opts, int argc, char **argv,
                                   struct sbx_error *err)
{
    struct option longs[N_ELEMENTS(rows) + 1];
    enum sbx_status st = SBX_OK;
    int value;

    *opts = (struct sbx_cli_opts){.pass = SBX_OPTIONS_INIT};
    long_options(longs);
    opterr = 0;
    /* "-" gives operands in their order and permutes nothing, so that what follows `--` stays as
     * it was typed and a third operand before it is seen. */
    while (!st && !opts->help && !opts->version &&
           (value = getopt_long(argc, argv, "-:hqv", longs, NULL)) != -1) {
        const struct row *row = row_of(value);

        opts->hint = !row;
        if (value == 1)
            st = operand(opts, optarg, err);
        else if (!row)
            st = bad_option(value, argv, err);
        else
            st = row->take(opts, row, optarg, err);
    }
    if (st || opts->help || opts->version)
        return st;
    opts->hint = true;
    opts->pass.exclude = opts->exclude;
    opts->pass.source = opts->source;
    /* Everything before `--` was consumed, so anything left is what follows it. */
    if (optind < argc)
        opts->command = (const char *const *)argv + optind;
    return check(opts, err);
}
