/* In: paths that the sandbox has chosen. Out: shell text in which every one of them is a single
 * quoted word of letters, digits and octal escapes, so that no path can be read as a command, an
 * option or an expansion. */
#include "transport/exec_script.h"

#include <inttypes.h>
#include <stdbool.h>

/* Undoes what profiles do. Then one subshell, which is parsed whole before it runs. */
static const char prologue[] = "\ntrap '' PIPE; unset IFS; set +euCfxv; unalias -a 2>/dev/null\n"
                               "(\n";

/* sbx_f INDEX SIZE NAME. Only names with an escape cost a process (in mksh printf is one); the dot
 * keeps a newline at the end of a name, and the slash keeps printf from seeing an option. Whoever
 * cannot be found is denied rather than vanished if the nearest directory that can be found may not
 * be searched. The state is told before the file is opened, so that the host knows which file holds
 * everything up. With SIZE 0 nothing is opened at all. */
static const char function[] =
    "sbx_f() {\n"
    "case $3 in *\\\\*) sbx_p=$(printf \"/$3.\"); sbx_p=$R${sbx_p%.} ;; *) sbx_p=$R/$3 ;; esac\n"
    "sbx_s=ok\n"
    "if [ -h \"$sbx_p\" ]; then sbx_s=notreg\n"
    "elif [ ! -e \"$sbx_p\" ]; then sbx_s=vanished; sbx_d=${sbx_p%/*}\n"
    "while [ -n \"$sbx_d\" ] && [ ! -d \"$sbx_d\" ]; do\n"
    "case $sbx_d in */*) sbx_d=${sbx_d%/*} ;; *) sbx_d= ;; esac; done\n"
    "[ -x \"${sbx_d:-/}\" ] || sbx_s=denied\n"
    "elif [ ! -f \"$sbx_p\" ]; then sbx_s=notreg\n"
    "elif [ ! -r \"$sbx_p\" ]; then sbx_s=denied; fi\n"
    "echo \"\n$sbx_n file $1 $sbx_s\"\n"
    "[ $sbx_s = ok ] || return 0\n"
    "{ sbx_h=0; [ \"$2\" = 0 ] || head -c \"$2\" \"$sbx_p\" || sbx_h=$?\n"
    "printf '\\n%s %s ' \"$sbx_n\" \"$sbx_h\"; rec \"$sbx_p\"; } | enc\n"
    "echo \"\n$sbx_n done $1 $?\"\n"
    "}\n";

static const char epilogue[] = "echo \"\n$sbx_n end\"\n) </dev/null\n";

/* What stands for itself. A '%' does not: names are a format of printf. */
static bool is_plain(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-';
}

size_t sbx_exec_script_name_len(const struct sbx_wanted *file)
{
    size_t i, n = 0;

    for (i = 0; i < file->path_len; i++)
        n += is_plain((unsigned char)file->path[i]) ? 1 : 4;
    return n;
}

static enum sbx_status add_name(struct sbx_buf *out, const struct sbx_wanted *file,
                                struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_reserve(out, sbx_exec_script_name_len(file), err);
    size_t i;

    for (i = 0; i < file->path_len && !st; i++) {
        unsigned char c = (unsigned char)file->path[i];

        if (is_plain(c))
            st = sbx_buf_add(out, &file->path[i], 1, err);
        else
            st = sbx_buf_printf(out, err, "\\%03o", c);
    }
    return st;
}

static enum sbx_status add_file(struct sbx_buf *out, const struct sbx_wanted *file, size_t index,
                                struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_printf(out, err, "sbx_f %zu %" PRIu64 " '", index, file->size);

    if (!st)
        st = add_name(out, file, err);
    if (!st)
        st = sbx_buf_str(out, "'\n", err);
    return st;
}

enum sbx_status sbx_exec_script(const char *nonce, const char *snippet,
                                const struct sbx_wanted *const files[], size_t n,
                                struct sbx_buf *out, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_str(out, prologue, err);
    size_t i;

    if (!st)
        st = sbx_buf_printf(out, err, "sbx_n=%s; LC_ALL=C; export LC_ALL\n%s\n%s", nonce, snippet,
                            function);
    for (i = 0; i < n && !st; i++)
        st = add_file(out, files[i], i, err);
    if (!st)
        st = sbx_buf_str(out, epilogue, err);
    return st;
}
