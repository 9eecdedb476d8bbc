/* A program of someone else's, which knows nothing but what is installed. */
#include <sbx/sync.h>
#include <sbx/version.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
    const char *none[] = {NULL};
    struct sbx_transport *transport = NULL;
    struct sbx_report *report = NULL;
    struct sbx_error err = {0};
    struct sbx_options options = SBX_OPTIONS_INIT;
    int wrong = sbx_init(&err) != SBX_OK || strcmp(sbx_version(), SBX_VERSION) != 0;

    /* Whatever else it does, it links, and says what is wrong in its own words. */
    wrong |= sbx_transport_exec_new("/", none, &transport, &err) != SBX_E_USAGE;
    wrong |= sbx_report_new(&report, &err) != SBX_OK;
    wrong |=
        options.version != SBX_OPTIONS_VERSION || sbx_report_outcome(report) != SBX_PASS_FAILED;
    printf("%s: %s\n", sbx_status_name(err.status), err.msg);
    sbx_transport_free(transport);
    sbx_report_free(report);
    return wrong;
}
