/* Patterns come from the operator, paths from a hostile sandbox: no path may make a pattern slow.
 * Hence no recursion, and never more than one `*` and one `**` to go back to: an earlier one could
 * only find what a later one finds too. */
#include "preflight/exclude.h"

#include <string.h>

/* A pattern at work on a text. Positions are byte offsets; `star` and `deep` are those in the
 * pattern behind the last `*` and the last `**`, 0 if there is none to go back to. */
struct glob {
    const char *pattern, *text;
    size_t n_pattern, n_text;
    bool directory; /* only what a slash follows counts */
    size_t p, t;
    size_t star, star_t;  /* star_t: where the `*` has got to */
    size_t deep, deep_t;  /* deep_t: where the `**` has got to */
    bool deep_components; /* the `**` is a whole component: only ends behind a slash */
    size_t first_star_t;  /* where the first `*` behind the `**` began */
    bool has_first_star;
};

static size_t next_char(const struct glob *g, size_t t)
{
    do
        t++;
    while (t < g->n_text && ((unsigned char)g->text[t] & 0xc0) == 0x80);
    return t;
}

/* The position of the next slash of the text, or its end. */
static size_t next_slash(const struct glob *g, size_t t)
{
    const char *slash = memchr(g->text + t, '/', g->n_text - t);

    return slash ? (size_t)(slash - g->text) : g->n_text;
}

/* The whole pattern is used up: does the match end with a component? */
static bool accepts(const struct glob *g)
{
    return g->t == g->n_text ? !g->directory : g->text[g->t] == '/';
}

/* At stars: notes where to come back to, and takes them as nothing for now. */
static void begin_star(struct glob *g)
{
    size_t from = g->p;

    while (g->p < g->n_pattern && g->pattern[g->p] == '*')
        g->p++;
    if (g->p - from == 1) {
        if (!g->has_first_star)
            g->first_star_t = g->t;
        g->has_first_star = true;
        g->star = g->p;
        g->star_t = g->t;
        return;
    }
    g->deep_components = (from == 0 || g->pattern[from - 1] == '/') && g->p < g->n_pattern &&
                         g->pattern[g->p] == '/';
    g->p += g->deep_components;
    g->deep = g->p;
    g->deep_t = g->t;
    g->star = 0;
    g->has_first_star = false;
}

static bool step(struct glob *g)
{
    if (g->p == g->n_pattern || g->t == g->n_text)
        return false;
    if (g->pattern[g->p] == '?') {
        if (g->text[g->t] == '/')
            return false;
        g->t = next_char(g, g->t);
    } else {
        if (g->pattern[g->p] != g->text[g->t])
            return false;
        g->t++;
    }
    g->p++;
    return true;
}

/* Bytes that the pattern between the `**` and the first `*` behind it takes at most. */
static size_t head_len(const struct glob *g)
{
    size_t len = 0;

    for (size_t p = g->deep; p < g->n_pattern && g->pattern[p] != '*'; p++)
        len += g->pattern[p] == '?' ? 4 : 1;
    return len;
}

/* Lets the `**` take more. If a `*` behind it has failed, all beginnings fail that put that `*`
 * into the same component: it could have got there from here as well. They are skipped, or a path
 * of many beginnings would cost its square. */
static bool extend_deep(struct glob *g)
{
    size_t next;

    if (!g->deep || g->deep_t == g->n_text)
        return false;
    if (g->deep_components) {
        next = next_slash(g, g->deep_t);
        if (next == g->n_text)
            return false;
        next++;
    } else {
        next = next_char(g, g->deep_t);
        if (g->has_first_star) {
            size_t beyond = next_slash(g, g->first_star_t) + 1, head = head_len(g);
            size_t jump = beyond > head ? beyond - head : 0;

            while (jump > next && jump < g->n_text && ((unsigned char)g->text[jump] & 0xc0) == 0x80)
                jump--;
            next = jump > next ? jump : next;
        }
    }
    if (next > g->n_text)
        return false;
    g->deep_t = g->t = next;
    g->p = g->deep;
    g->star = 0;
    g->has_first_star = false;
    return true;
}

static bool go_back(struct glob *g)
{
    if (g->star && g->star_t < g->n_text && g->text[g->star_t] != '/') {
        g->star_t = g->t = next_char(g, g->star_t);
        g->p = g->star;
        return true;
    }
    return extend_deep(g);
}

static bool matches(struct glob *g)
{
    for (;;) {
        if (g->p == g->n_pattern && accepts(g))
            return true;
        if (g->p < g->n_pattern && g->pattern[g->p] == '*')
            begin_star(g);
        else if (!step(g) && !go_back(g))
            return false;
    }
}

static bool any_component(const char *pattern, size_t n, bool directory, const char *path,
                          size_t path_len)
{
    size_t at = 0;

    for (;;) {
        const char *slash = memchr(path + at, '/', path_len - at);
        size_t end = slash ? (size_t)(slash - path) : path_len;
        struct glob g = {.pattern = pattern, .n_pattern = n, .text = path + at, .n_text = end - at};

        if ((slash || !directory) && matches(&g))
            return true;
        if (!slash)
            return false;
        at = end + 1;
    }
}

bool sbx_pre_exclude(const char *pattern, const char *path, size_t path_len)
{
    size_t n = strlen(pattern);
    bool directory = n > 0 && pattern[n - 1] == '/';
    bool rooted;
    struct glob g;

    n -= directory;
    rooted = memchr(pattern, '/', n) != NULL;
    if (n > 0 && pattern[0] == '/') {
        pattern++;
        n--;
    }
    if (n == 0)
        return false;
    if (!rooted)
        return any_component(pattern, n, directory, path, path_len);
    g = (struct glob){.pattern = pattern,
                      .n_pattern = n,
                      .text = path,
                      .n_text = path_len,
                      .directory = directory};
    return matches(&g);
}

bool sbx_pre_exclude_plain(const char *pattern)
{
    return pattern[0] && !strpbrk(pattern, "/*?[\\");
}
