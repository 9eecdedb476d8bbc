/* The names of the closed sets, as report and man page spell them. */
#include "base/attr.h"
#include "sbx/sync.h"
#include "sbx/verdict.h"

static const char *const outcomes[SBX_OUTCOMES] = {
    [SBX_PUBLISHED] = "published", [SBX_WOULD_PUBLISH] = "would-publish",
    [SBX_UNCHANGED] = "unchanged", [SBX_EXCLUDED] = "excluded",
    [SBX_REFUSED] = "refused",     [SBX_DEFERRED] = "deferred",
    [SBX_FAILED] = "failed",
};

static const char *const reasons[SBX_REASONS] = {
    [SBX_REFUSE_ENCODING] = "encoding",
    [SBX_REFUSE_TRAVERSAL] = "traversal",
    [SBX_REFUSE_TOO_LONG] = "too-long",
    [SBX_REFUSE_TOO_DEEP] = "too-deep",
    [SBX_REFUSE_RESERVED_NAME] = "reserved-name",
    [SBX_REFUSE_SEPARATOR] = "separator",
    [SBX_REFUSE_CONTROL] = "control",
    [SBX_REFUSE_RESERVED_CHAR] = "reserved-char",
    [SBX_REFUSE_TRAILING] = "trailing",
    [SBX_REFUSE_BAD_TIME] = "bad-time",
    [SBX_REFUSE_ALIAS] = "alias",
    [SBX_REFUSE_ALIAS_LOCAL] = "alias-local",
    [SBX_REFUSE_LINKED] = "linked",
    [SBX_REFUSE_TYPE_CONFLICT] = "type-conflict",
    [SBX_REFUSE_SPECIAL] = "special",
    [SBX_REFUSE_TOO_LARGE] = "too-large",
    [SBX_REFUSE_HOST_NAME] = "host-name",
    [SBX_FAIL_CHANGED] = "changed",
    [SBX_FAIL_SHORT] = "short",
    [SBX_FAIL_VANISHED] = "vanished",
    [SBX_FAIL_DENIED] = "denied",
    [SBX_FAIL_SERVER] = "server",
    [SBX_FAIL_PROTOCOL] = "protocol",
    [SBX_FAIL_HOST] = "host",
    [SBX_FAIL_APPEARED] = "appeared",
    [SBX_DEFER_OVER_BUDGET] = "over-budget",
    [SBX_DEFER_DEADLINE] = "deadline",
    [SBX_DEFER_CANCELLED] = "cancelled",
    [SBX_DEFER_SOURCE_LOST] = "source-lost",
    [SBX_DEFER_HOST_FULL] = "host-full",
    [SBX_EXCLUDE_PATTERN] = "excluded",
};

static const char *const warnings[SBX_WARNINGS] = {
    [SBX_WARN_FIND_ERRORS] = "find-errors",
    [SBX_WARN_DUPLICATE] = "duplicate",
    [SBX_WARN_UNCONFIRMED] = "unconfirmed",
    [SBX_WARN_CTIME_MOVED] = "ctime-moved",
    [SBX_WARN_NO_LOCK] = "no-lock",
    [SBX_WARN_MANIFEST] = "manifest",
    [SBX_WARN_MANIFEST_WRITE] = "manifest-write",
    [SBX_WARN_TIMES] = "times",
    [SBX_WARN_MODE] = "mode",
    [SBX_WARN_DIR_SYNC] = "dir-sync",
    [SBX_WARN_UNSYNCED] = "unsynced",
    [SBX_WARN_NO_NOREPLACE] = "no-noreplace",
    [SBX_WARN_SWEEP] = "sweep",
    [SBX_WARN_PLAIN_HTTP] = "plain-http",
    [SBX_WARN_LEASE] = "lease",
};

static const char *const listing_states[] = {
    [SBX_LISTING_NONE] = "none",
    [SBX_LISTING_COMPLETE] = "complete",
    [SBX_LISTING_WARNED] = "warned",
    [SBX_LISTING_TRUNCATED] = "truncated",
    [SBX_LISTING_DAMAGED] = "damaged",
    [SBX_LISTING_MISSING] = "missing",
    [SBX_LISTING_NOTDIR] = "notdir",
    [SBX_LISTING_DENIED] = "denied",
    [SBX_LISTING_UNREACHABLE] = "unreachable",
    [SBX_LISTING_CANCELLED] = "cancelled",
    [SBX_LISTING_DEADLINE] = "deadline",
};

static const char *const pass_outcomes[] = {
    [SBX_PASS_FAILED] = "failed",
    [SBX_PASS_PARTIAL] = "partial",
    [SBX_PASS_COMPLETE] = "complete",
};

static const char *name_of(const char *const *names, size_t n, unsigned value)
{
    return value < n && names[value] ? names[value] : "";
}

const char *sbx_outcome_name(enum sbx_outcome outcome)
{
    return name_of(outcomes, N_ELEMENTS(outcomes), outcome);
}

const char *sbx_reason_name(enum sbx_reason reason)
{
    return name_of(reasons, N_ELEMENTS(reasons), reason);
}

const char *sbx_warning_name(enum sbx_warning warning)
{
    return name_of(warnings, N_ELEMENTS(warnings), warning);
}

const char *sbx_listing_state_name(enum sbx_listing_state state)
{
    return name_of(listing_states, N_ELEMENTS(listing_states), state);
}

const char *sbx_pass_outcome_name(enum sbx_pass_outcome outcome)
{
    return name_of(pass_outcomes, N_ELEMENTS(pass_outcomes), outcome);
}
