/* In: paths that the sandbox has chosen. Out: shell text in which every one of them is a single
 * quoted word of letters, digits and octal escapes, so that no path can be read as a command, an
 * option or an expansion. */
#include "transport/exec_script.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/quote.h"
#include "transport/exec_group.h"

/* Undoes what profiles do. Then one subshell, which is parsed whole before it runs. */
static const char prologue[] = "\ntrap '' PIPE; unset IFS; set +euCfxv; unalias -a 2>/dev/null\n"
                               "(\n";

/* Under a long root a path would be beyond PATH_MAX sooner than the walk was. If there is no way
 * there any more, that shows file by file. */
static const char go[] = "cd -P -- \"$R\" 2>/dev/null && R=.\n";

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

/* sbx_g FIRST BYTES NAME...: several files through one pipeline, as exec_group reads them. Whoever
 * is no regular file leaves the content short, and then each is asked for by itself. */
static const char group_function[] =
    "sbx_g() {\n"
    "sbx_i=$1 sbx_t=$2; shift 2\n"
    "for sbx_x do shift; case $sbx_x in *\\\\*) sbx_x=$(printf \"/$sbx_x.\"); sbx_x=${sbx_x%.}\n"
    "sbx_x=${sbx_x#/} ;; esac; set -- \"$@\" \"$sbx_x\"; done\n"
    "echo \"\n$sbx_n group $sbx_i $#\"\n"
    "{ cd -P -- \"$R\" && {\n"
    "for sbx_x do [ -f \"$sbx_x\" ] && [ ! -h \"$sbx_x\" ] || exit 0; done\n"
    "recs \"$@\"; printf '\\n%s ' \"$sbx_n\"\n"
    "[ \"$sbx_t\" = 0 ] || cat -- \"$@\" | head -c \"$sbx_t\"\n"
    "printf '\\n%s ' \"$sbx_n\"; recs \"$@\"; }; } 2>/dev/null | enc\n"
    "echo \"\n$sbx_n done $sbx_i $?\"\n"
    "}\n";

static const char epilogue[] = "echo \"\n$sbx_n end\"\n) </dev/null\n";

static enum sbx_status add_file(struct sbx_buf *out, const struct sbx_wanted *file, size_t index,
                                struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_printf(out, err, "sbx_f %zu %" PRIu64 " '", index, file->size);

    if (!st)
        st = sbx_quote_octal(out, file->path, file->path_len, err);
    if (!st)
        st = sbx_buf_str(out, "'\n", err);
    return st;
}

/* files[first..first + count) on one line. */
static enum sbx_status add_group(struct sbx_buf *out, const struct sbx_wanted *const files[],
                                 size_t first, size_t count, struct sbx_error *err)
{
    enum sbx_status st;
    uint64_t bytes = 0;
    size_t i;

    for (i = 0; i < count; i++)
        bytes += files[first + i]->size;
    st = sbx_buf_printf(out, err, "sbx_g %zu %" PRIu64, first, bytes);
    for (i = 0; i < count && !st; i++) {
        st = sbx_buf_str(out, " '", err);
        if (!st)
            st = sbx_quote_octal(out, files[first + i]->path, files[first + i]->path_len, err);
        if (!st)
            st = sbx_buf_str(out, "'", err);
    }
    return st ? st : sbx_buf_str(out, "\n", err);
}

enum sbx_status sbx_exec_script(const char *nonce, const char *snippet,
                                const struct sbx_wanted *const files[], size_t n, size_t singles,
                                struct sbx_buf *out, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_str(out, prologue, err);
    size_t i;

    if (!st)
        st = sbx_buf_printf(out, err, "sbx_n=%s; LC_ALL=C; export LC_ALL\n%s\n%s%s%s", nonce,
                            snippet, go, function, group_function);
    for (i = 0; i < n && !st;) {
        size_t count = sbx_exec_group(files, n, singles, i);

        st = count > 1 ? add_group(out, files, i, count, err) : add_file(out, files[i], i, err);
        i += count;
    }
    if (!st)
        st = sbx_buf_str(out, epilogue, err);
    return st;
}
