/* Makes the shell text that runs in the sandbox. Comes in: a root and names, which may hold any
 * byte but NUL (names were chosen by the sandbox); both leave quoted or as octal escapes, so that
 * none of them is ever shell text. What they print is not trusted: see decode.c and list.c. */
#include "listing/script.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/quote.h"

/* A printf may be an external program (mksh has none built in), and Linux bounds one argument to
 * 128 KiB. */
#define NAMES_PER_PRINTF (32 * SBX_KIB)

/* Of a name beside its escaped bytes: "./" and the NUL at its end. */
#define NAME_EXTRA 6

/* Undoes what profiles and other clients of the same shell may have done. What follows it in each
 * script is one subshell, which is parsed whole: a script that was cut does not run. */
static const char prologue[] =
    "\ntrap '' PIPE; unset IFS; set +euCfxv; unalias -a 2>/dev/null\n(\n";

/* `missing` and `denied` differ in whether the nearest directory that is there may be searched. */
static const char root_state[] =
    "LC_ALL=C; TZ=UTC0; export LC_ALL TZ R; unset GZIP POSIXLY_CORRECT CDPATH\n"
    "r=ok; [ -d \"$R\" ] || { r=missing; [ -e \"$R\" ] && r=notdir; }\n"
    "if [ $r = missing ]; then\n"
    "p=$R\n"
    "while :; do case $p in */*) p=${p%/*} ;; *) break ;; esac; [ -e \"${p:-/}\" ] && break; done\n"
    "[ -d \"${p:-/}\" ] && { [ -x \"${p:-/}\" ] || r=denied; }\n"
    "fi\n"
    "if [ $r = ok ]; then [ -r \"$R\" ] && [ -x \"$R\" ] || r=denied; fi\n";

/* Each tool is tried on exactly what it will be asked for: BusyBox find has no -printf, toybox's
 * has one without %C@; base64 may not know -w, and gzip may be a stub. */
static const char probes[] =
    "S=$(command -v sh) || S=/bin/sh\n"
    "w=stat; find / -maxdepth 0 -printf '%s %T@ %C@ %P\\0' >/dev/null 2>&1 && w=printf\n"
    "k=plain; case $( { echo x | gzip -1 | head -c 2 | od -An -tx1; } 2>/dev/null ) in\n"
    "*1f*8b*) k=gzip ;; esac\n"
    "e=hex; [ \"$( { echo x | base64 -w " SBX_ENCODED_LINE
    "; } 2>/dev/null )\" = eAo= ] && e=base64\n";

/* `rec PATH` for both kinds of tools. These texts also stand inside single quotes (see `one`), so
 * they hold none. The names begin with `_` since the snippet runs in the middle of other scripts.
 *
 * The record must not come out in part when PATH is no regular file (any more): find then prints
 * nothing and succeeds, stat tells the type as the first hex digit of %f. BusyBox and toybox print
 * whole seconds as %Y and %Z only; the fraction is taken from the text forms, ending in the
 * zone. */
static const char rec_printf[] =
    "rec() { _l=$(find \"$1\" -maxdepth 0 -type f -printf \"%s %T@ %C@\") && [ \"$_l\" ] &&\n"
    "printf \"%s %s\\0\" \"$_l\" \"${1#\"$R\"/}\"; }\n";
static const char rec_stat[] =
    "_f() { case $1 in 8???\\ *) ;; *) return 1 ;; esac\n"
    "_z=${1#* }; _a=${_z#*.}; _b=${_z#* }; _m=${_a%% *}; _c=${1##*.}; _d=${_a#* +0000 }\n"
    "_z=${_z%% *}; _m=${_b%% *}.$_m; _d=${_d%% *}.${_c%% *}; }\n"
    "rec() { _l=$(stat -c \"%f %s %Y %y %Z %z\" -- \"$1\") || return 1\n"
    "_f \"$_l\" && printf \"%s %s %s %s\\0\" \"$_z\" \"$_m\" \"$_d\" \"${1#\"$R\"/}\"; :; }\n";

/* `recs NAME...` in the root: one process for all names, and nothing at all if one is gone. */
static const char recs_printf[] =
    "recs() { find \"$@\" -maxdepth 0 -type f -printf \"%s %T@ %C@ %p\\0\" 2>/dev/null; }\n";
static const char recs_stat[] =
    "recs() { _t=$(stat -c \"%f %s %Y %y %Z %z\" -- \"$@\" 2>/dev/null) || return 1; IFS=\"\n\"\n"
    "for _l in $_t; do\n"
    "_f \"$_l\" && printf \"%s %s %s %s\\0\" \"$_z\" \"$_m\" \"$_d\" \"$1\"; shift\n"
    "done; unset IFS; }\n";

/* One stat for all names, paired with them only if it succeeded for every one; then done. One
 * printf for some of them, too: where it is a program, as many as files would take minutes; for all
 * of them, shells would copy the growing command too often. */
static const char stat_all[] =
    "all() { t=$(stat -c \"%f %s %Y %y %Z %z\" -- \"$@\" 2>/dev/null) || return 0\n"
    "i=0; q=; IFS=\"\n"
    "\"; for l in $t .; do\n"
    "if [ \"$l\" != . ]; then\n"
    "i=$((i + 1)); _f \"$l\" && q=\"$q $_z $_m $_d \\\"\\${$i#\\\"\\$R\\\"/}\\\"\"\n"
    "[ $i = 16 ] || continue\n"
    "fi\n"
    "[ -z \"$q\" ] || eval \"printf \\\"%s %s %s %s\\\\0\\\" $q\" || exit 1\n"
    "[ $i != 16 ] || shift 16; i=0; q=\n"
    "done; exit 0; }\n"
    "all \"$@\"\n";
static const char stat_each[] = "x=0; for p do rec \"$p\" || x=1; done\n";

/* The walk begins at `R/.`: so `-name X -prune` does not meet the root's own name. Where find can
 * write to a descriptor by name, it writes a dot there for each link and special file, before its
 * status. */
static const char list_walk[] =
    "R=$R/.\n"
    "d=; [ $w = printf ] &&\n"
    "[ \"$( { find / -maxdepth 0 -fprintf /dev/fd/5 x; } 5>&1 2>/dev/null )\" = x ] && d=1\n"
    "all() { files -printf '%s %T@ %C@ %P\\0' \"$@\"; }\n"
    "walk() { case $w$d in\n"
    "printf) all ;;\n"
    "printf1)\n"
    "{ c=$( { all -o ! -type d -fprintf /dev/fd/5 . >&6; echo $?; } 5>&1 ); } 6>&1\n"
    "f=${c##*.}; echo \"skipped=$((${#c} - ${#f}))\" >&4; return \"$f\" ;;\n"
    "*) command -v stat >/dev/null || return 127\n"
    "{ files -print0; echo \"walk=$?\" >&4; } |\n"
    "xargs -0 -n 500 \"$S\" -c \"$one\" sh 4>&- ;; esac; }\n";

/* A file that vanished is simply left out: if there is one, what is there is asked for again. */
static const char confirm_stat[] =
    "for p do shift; [ -f \"./$p\" ] && [ ! -h \"./$p\" ] && set -- \"$@\" \"$p\"; done\n"
    "all \"$@\"\n";
static const char confirm_printf[] =
    "[ $# = 0 ] || find \"$@\" -maxdepth 0 -type f -printf \"%s %T@ %C@ %p\\0\" 2>/dev/null ||\n"
    "[ $? = 1 ]";

/* Names are relative to the root, which the script has gone to, since under a long root they would
 * be beyond PATH_MAX sooner than the walk was. `odd` has those that find would take for options or
 * expressions: they come as `./-x`, which find would print like that, so they go through rec. */
static const char confirm_walk[] =
    "[ $r != ok ] || cd -P -- \"$R\" || r=denied\n"
    "R=.\n"
    "each() { xargs -0 -n 500 \"$S\" -c \"$1\" sh 4>&-; }\n"
    "walk() { case $w in\n"
    "printf) names | each \"$one\" && odd | each \"$one_odd\" ;;\n"
    "*) command -v stat >/dev/null || return 127\n"
    "echo walk=0 >&4; { names; odd; } | each \"$one_stat\" ;; esac; }\n";

/* Every stage tells its status through descriptor 4, since a pipeline has only its last one's; the
 * `end` record goes the way of the records, which proves that nobody cut them. */
static const char frame_begin[] =
    "echo; echo \"$n begin v=1 root=$r now=$(date +%s) tools=$w,$k,$e\"\n"
    "[ $r = ok ] || exit 0\n"
    "st=$( { { s=0; walk || s=$?; echo \"find=$s\" >&4; printf 'end %s\\0' \"$s\"; } |\n";
static const char frame_end[] =
    "  { if [ $k = gzip ]; then gzip -1; else cat; fi; echo \"pack=$?\" >&4; } |\n"
    "  { if [ $e = base64 ]; then base64 -w " SBX_ENCODED_LINE
    "; else od -An -v -tx1; fi; echo \"encode=$?\" >&4;"
    " } >&3; } 4>&1 )\n"
    "echo \"$n end\" $st\n"
    ") 3>&1 </dev/null\n";

/* Appends the texts up to a NULL. */
static enum sbx_status add_texts(struct sbx_buf *out, const char *const *texts,
                                 struct sbx_error *err)
{
    for (; *texts; texts++) {
        enum sbx_status st = sbx_buf_str(out, *texts, err);

        if (st)
            return st;
    }
    return SBX_OK;
}

/* "R='…'", without trailing slashes, and never anything that a tool could take for an option. */
static enum sbx_status add_root(struct sbx_buf *out, const char *root, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf path = SBX_BUF_INIT(SIZE_MAX / 4);
    size_t n = strlen(root);
    enum sbx_status st;

    if (n == 0)
        return sbx_err_set(err, SBX_E_USAGE, 0, "the remote directory has no name");
    while (n > 0 && root[n - 1] == '/')
        n--;
    if (n == 0)
        return sbx_buf_str(out, "R='/.'\n", err);
    st = sbx_buf_str(&path, root[0] == '/' ? "" : "./", err);
    if (!st)
        st = sbx_buf_add(&path, root, n, err);
    if (!st)
        st = sbx_buf_str(out, "R=", err);
    if (!st)
        st = sbx_quote_sh(out, path.data, path.len, err);
    return st ? st : sbx_buf_str(out, "\n", err);
}

static bool is_nonce(const char *nonce)
{
    return strlen(nonce) == SBX_NONCE_CHARS && strspn(nonce, "0123456789abcdef") == SBX_NONCE_CHARS;
}

/* The head that both scripts share, up to what the tools are. */
static enum sbx_status add_head(const struct sbx_list_script *args, struct sbx_buf *out,
                                struct sbx_error *err)
{
    enum sbx_status st;

    if (!is_nonce(args->nonce))
        return sbx_err_set(err, SBX_E_USAGE, 0, "a nonce is %d lower-case hex digits",
                           SBX_NONCE_CHARS);
    st = sbx_buf_printf(out, err, "%sn=%s\n", prologue, args->nonce);
    if (!st)
        st = add_root(out, args->root, err);
    return st ? st : add_texts(out, (const char *const[]){root_state, probes, NULL}, err);
}

static enum sbx_status add_frame(const struct sbx_list_script *args, struct sbx_buf *out,
                                 struct sbx_error *err)
{
    uint64_t cap = args->max_bytes < UINT64_MAX ? args->max_bytes + 1 : UINT64_MAX;
    enum sbx_status st;

    st = sbx_buf_printf(out, err, "%s  { head -c %llu; echo \"cap=$?\" >&4; } |\n", frame_begin,
                        (unsigned long long)cap);
    return st ? st : sbx_buf_str(out, frame_end, err);
}

/* "-name 'X' -prune -o " for a name that find must not take for a pattern. */
static enum sbx_status add_prune(struct sbx_buf *out, const char *name, struct sbx_error *err)
{
    SBX_BUF_AUTO struct sbx_buf glob = SBX_BUF_INIT(SIZE_MAX / 4);
    enum sbx_status st = SBX_OK;

    if (!*name || strchr(name, '/'))
        return SBX_OK; /* matches no component, so there is nothing to prune */
    for (const char *p = name; *p && !st; p++) {
        if (strchr("[]*?\\", *p))
            st = sbx_buf_str(&glob, "\\", err);
        if (!st)
            st = sbx_buf_add(&glob, p, 1, err);
    }
    if (!st)
        st = sbx_buf_str(out, "-name ", err);
    if (!st)
        st = sbx_quote_sh(out, glob.data, glob.len, err);
    return st ? st : sbx_buf_str(out, " -prune -o ", err);
}

static enum sbx_status add_files(const struct sbx_list_script *args, struct sbx_buf *out,
                                 struct sbx_error *err)
{
    static const char own[] =
        "files() { find -H \"$R\" ${sbx_own:+-name \"$sbx_own\" ! -type d -o} ";
    enum sbx_status st = sbx_buf_str(out, own, err);

    for (size_t i = 0; i < args->n_prune && !st; i++)
        st = add_prune(out, args->prune[i], err);
    return st ? st : sbx_buf_str(out, "-type f \"$@\"; }\n", err);
}

enum sbx_status sbx_list_script(const struct sbx_list_script *args, struct sbx_buf *out,
                                struct sbx_error *err)
{
    static const char *const one[] = {"one='", rec_stat, stat_all, stat_each, "exit $x'\n", NULL};
    enum sbx_status st = add_head(args, out, err);

    if (!st)
        st = add_texts(out, one, err);
    if (!st)
        st = add_files(args, out, err);
    if (!st)
        st = sbx_buf_str(out, list_walk, err);
    return st ? st : add_frame(args, out, err);
}

static bool is_odd(const struct sbx_list_name *name)
{
    return name->path_len > 0 && memchr(SBX_QUOTE_ODD, name->path[0], strlen(SBX_QUOTE_ODD));
}

/* Appends a name for a printf format, ended by NUL. */
static enum sbx_status add_name(struct sbx_buf *out, const struct sbx_list_name *name,
                                struct sbx_error *err)
{
    enum sbx_status st = SBX_OK;

    if (name->path_len == 0 || memchr(name->path, '\0', name->path_len))
        return sbx_err_set(err, SBX_E_USAGE, 0, "no name of a file: '%s'",
                           SBX_QUOTE_N(name->path, name->path_len));
    if (is_odd(name))
        st = sbx_buf_str(out, "./", err);
    if (!st)
        st = sbx_quote_octal(out, name->path, name->path_len, err);
    return st ? st : sbx_buf_str(out, "\\000", err);
}

/* A function that prints those of the names that are odd, or that are not, by some printf
 * commands. */
static enum sbx_status add_names(const struct sbx_list_name *names, size_t n, bool odd,
                                 struct sbx_buf *out, struct sbx_error *err)
{
    enum sbx_status st = sbx_buf_str(out, odd ? "odd() {\nprintf '" : "names() {\nprintf '", err);
    size_t start = out->len, most;

    for (size_t i = 0; i < n && !st; i++) {
        if (is_odd(&names[i]) != odd)
            continue;
        most = names[i].path_len * SBX_QUOTE_OCTAL_MOST + NAME_EXTRA;
        if (out->len > start && out->len - start + most > NAMES_PER_PRINTF) {
            st = sbx_buf_str(out, "'\nprintf '", err);
            start = out->len;
        }
        if (!st)
            st = add_name(out, &names[i], err);
    }
    return st ? st : sbx_buf_str(out, "'\n}\n", err);
}

enum sbx_status sbx_list_confirm_script(const struct sbx_list_script *args,
                                        const struct sbx_list_name *names, size_t n,
                                        struct sbx_buf *out, struct sbx_error *err)
{
    static const char *const ones[] = {"one='",      confirm_printf,
                                       "'\n",        "one_odd='",
                                       rec_printf,   "for p do rec \"$p\"; done; :",
                                       "'\n",        "one_stat='",
                                       rec_stat,     stat_all,
                                       confirm_stat, stat_each,
                                       "exit 0'\n",  NULL};
    enum sbx_status st = add_head(args, out, err);

    if (!st)
        st = add_texts(out, ones, err);
    if (!st)
        st = add_names(names, n, false, out, err);
    if (!st)
        st = add_names(names, n, true, out, err);
    if (!st)
        st = sbx_buf_str(out, confirm_walk, err);
    return st ? st : add_frame(args, out, err);
}

enum sbx_status sbx_list_snippet(const char *root, const char *tools, struct sbx_buf *out,
                                 struct sbx_error *err)
{
    static const char *const walks[] = {"printf,", "stat,"};
    static const char *const packs[] = {"gzip,", "plain,"};
    static const char *const codings[] = {"base64", "hex"};
    static const char *const recs[][2] = {{rec_printf, recs_printf}, {rec_stat, recs_stat}};
    static const char *const encs[] = {"enc() { base64 -w " SBX_ENCODED_LINE "; }\n",
                                       "enc() { od -An -v -tx1; }\n"};

    for (size_t i = 0; i < 8; i++) {
        char value[32];
        enum sbx_status st;

        (void)snprintf(value, sizeof(value), "%s%s%s", walks[i & 1], packs[i >> 1 & 1],
                       codings[i >> 2]);
        if (strcmp(value, tools) != 0)
            continue;
        st = sbx_buf_str(out, "LC_ALL=C; TZ=UTC0; export LC_ALL TZ; unset POSIXLY_CORRECT\n", err);
        if (!st)
            st = add_root(out, root, err);
        if (!st)
            st = sbx_buf_str(out, recs[i & 1][0], err);
        if (!st)
            st = sbx_buf_str(out, recs[i & 1][1], err);
        return st ? st : sbx_buf_str(out, encs[i >> 2], err);
    }
    return sbx_err_set(err, SBX_E_REMOTE, 0, "unknown remote tools: '%s'", SBX_QUOTE(tools));
}
