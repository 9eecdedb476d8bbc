/* One command through POST /command of execd, from its start to its terminal event. */
#ifndef TRANSPORT_EXECD_COMMAND_H
#define TRANSPORT_EXECD_COMMAND_H

#include "sbx/transport.h"
#include "transport/http.h"
#include "transport/secrets.h"

/* Runs a script as `run` of struct sbx_transport_ops does. The client is used for nothing else
 * meanwhile, and has room for two connections. If the rest of the output is not wanted (cancelled,
 * deadline, `out` has failed), the command is ended through execd and its stream is left as execd
 * needs. What execd keeps of the command's output is deleted. Texts of `quiet_ns` nanoseconds (0:
 * no limit) without output are SBX_E_LIMIT; pings do not count as output. */
SBX_MUST_CHECK enum sbx_status sbx_execd_command(struct sbx_http *http,
                                                 const struct sbx_secrets *secrets,
                                                 const struct sbx_call *call, const char *script,
                                                 size_t script_len, uint64_t quiet_ns,
                                                 struct sbx_sink out, struct sbx_sink diag,
                                                 struct sbx_exit *ret_exit, struct sbx_error *err);

#endif
