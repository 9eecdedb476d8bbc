/* The paths of a whole listing come in, chosen to collide, to nest and to be many; out come those
 * that some file system would take for one name. Time is linear in their bytes.
 *
 * The tree of names is built by key, one node for all spellings of a name. Since records are sorted
 * and everything under one spelling of a directory stands together, each spelling is met exactly
 * once: a node that was met twice has two spellings, or is a file and a directory. */
#include "preflight/alias.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "preflight/fold.h"
#include "sbx/verdict.h"

#define NO_NODE UINT32_MAX

/* A name under the name of its parent, 24 bytes. Node 0 is the root. Its spelling is the one that
 * was met first: records[record].path[end - len..end). */
struct node {
    uint32_t parent;
    uint32_t record, end, len;
    uint32_t tag;
    union {
        uint32_t met;  /* how often, while the tree is built */
        uint32_t name; /* then: 1 + the nearest name with several spellings, this or above; or 0 */
    };
};

/* A directory on the way to the current record. */
struct step {
    uint32_t end; /* of its path */
    uint32_t node;
};

struct tree {
    const struct sbx_record *records; /* borrowed */
    struct node *nodes;               /* owned, as all below */
    uint32_t *slots;                  /* nodes by hash, NO_NODE where free */
    uint32_t *leaf;                   /* of each record: the node of the file */
    struct step *steps;
    size_t n_nodes, cap_nodes, cap_slots, cap_leaf, n_steps, cap_steps;
    struct sbx_hash_key key;
    struct sbx_buf mine, theirs; /* keys that are compared */
    uint32_t theirs_of;          /* the node whose key `theirs` holds */
};

static void tree_done(struct tree *tree)
{
    free(tree->nodes);
    free(tree->slots);
    free(tree->leaf);
    free(tree->steps);
    sbx_buf_done(&tree->mine);
    sbx_buf_done(&tree->theirs);
}

static bool well_formed(unsigned char verdict)
{
    return verdict != SBX_REFUSE_ENCODING && verdict != SBX_REFUSE_TRAVERSAL;
}

static bool counts(unsigned char verdict)
{
    return well_formed(verdict) && verdict != SBX_EXCLUDE_PATTERN;
}

/* How many bytes two paths have in common at their beginning. */
static uint32_t common(const struct sbx_record *a, const struct sbx_record *b)
{
    uint32_t n = a->path_len < b->path_len ? a->path_len : b->path_len, i = 0;

    while (n - i >= 8) {
        uint64_t x, y;

        memcpy(&x, a->path + i, sizeof(x));
        memcpy(&y, b->path + i, sizeof(y));
        if (x != y)
            break;
        i += 8;
    }
    while (i < n && a->path[i] == b->path[i])
        i++;
    return i;
}

/* Counts distinct directories of all well-formed records, also excluded ones: the limit is about
 * the listing. Done first, so that it also bounds the memory of what follows. */
static enum sbx_status count_directories(const struct sbx_record *records, size_t n,
                                         const unsigned char *verdicts, uint64_t max, size_t *ret,
                                         struct sbx_error *err)
{
    const struct sbx_record *last = NULL;
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        const struct sbx_record *r = &records[i];
        const char *at, *end = r->path + r->path_len;

        if (!well_formed(verdicts[i]))
            continue;
        at = r->path + (last ? common(last, r) : 0);
        while ((at = memchr(at, '/', (size_t)(end - at)))) {
            count++;
            at++;
        }
        last = r;
        if (count > max)
            return sbx_err_set(err, SBX_E_LIMIT, 0, "the listing holds more than %llu directories",
                               (unsigned long long)max);
    }
    *ret = count;
    return SBX_OK;
}

/* Everything is allocated at once and exactly: growing would double the peak. */
static enum sbx_status tree_init(struct tree *tree, const struct sbx_record *records, size_t n,
                                 size_t directories, struct sbx_error *err)
{
    size_t nodes = 1 + n + directories, slots = 16;
    enum sbx_status st;

    if (n >= NO_NODE || directories >= NO_NODE - n - 1)
        return sbx_err_set(err, SBX_E_LIMIT, 0, "the listing is too large");
    while (slots < nodes + nodes / 3)
        slots *= 2;
    st = sbx_array_grow((void **)&tree->nodes, &tree->cap_nodes, nodes, nodes, sizeof(*tree->nodes),
                        err);
    if (!st)
        st = sbx_array_grow((void **)&tree->slots, &tree->cap_slots, slots, slots,
                            sizeof(*tree->slots), err);
    if (!st)
        st = sbx_array_grow((void **)&tree->leaf, &tree->cap_leaf, n, n, sizeof(*tree->leaf), err);
    if (st)
        return st;
    memset(tree->slots, 0xff, slots * sizeof(*tree->slots));
    tree->records = records;
    tree->nodes[0] = (struct node){0};
    tree->n_nodes = 1;
    tree->theirs_of = NO_NODE;
    tree->mine = tree->theirs = SBX_BUF_INIT(UINT32_MAX);
    sbx_hash_key_new(&tree->key);
    return SBX_OK;
}

/* Whether the component, whose key is tree->mine, is another spelling of the node's. A hash alone
 * never decides: 64 bits are few where 10 million names may be chosen. */
static enum sbx_status same_name(struct tree *tree, const struct node *component, uint32_t id,
                                 bool *ret, struct sbx_error *err)
{
    const struct node *node = &tree->nodes[id];
    const char *a = tree->records[node->record].path + node->end - node->len;
    const char *b = tree->records[component->record].path + component->end - component->len;
    enum sbx_status st = SBX_OK;

    if (node->parent != component->parent || node->tag != component->tag) {
        *ret = false;
        return SBX_OK;
    }
    if (node->len == component->len && memcmp(a, b, node->len) == 0) {
        *ret = true;
        return SBX_OK;
    }
    if (tree->theirs_of != id) {
        tree->theirs_of = NO_NODE;
        st = sbx_pre_key(a, node->len, &tree->theirs, err);
        if (st)
            return st;
        tree->theirs_of = id;
    }
    *ret = tree->mine.len == tree->theirs.len &&
           memcmp(tree->mine.data, tree->theirs.data, tree->mine.len) == 0;
    return SBX_OK;
}

/* Meets a component: finds or makes its node. */
static enum sbx_status meet(struct tree *tree, struct node component, uint32_t *ret,
                            struct sbx_error *err)
{
    const char *path = tree->records[component.record].path;
    size_t mask = tree->cap_slots - 1, slot;
    uint64_t hash;
    enum sbx_status st;

    st = sbx_pre_key(path + component.end - component.len, component.len, &tree->mine, err);
    if (st)
        return st;
    hash = sbx_hash(&tree->key, component.parent, tree->mine.data, tree->mine.len);
    component.tag = (uint32_t)(hash >> 32);
    for (slot = hash & mask; tree->slots[slot] != NO_NODE; slot = (slot + 1) & mask) {
        bool same = false;

        st = same_name(tree, &component, tree->slots[slot], &same, err);
        if (st)
            return st;
        if (same) {
            tree->nodes[tree->slots[slot]].met++;
            *ret = tree->slots[slot];
            return SBX_OK;
        }
    }
    component.met = 1;
    *ret = tree->slots[slot] = (uint32_t)tree->n_nodes;
    tree->nodes[tree->n_nodes++] = component;
    return SBX_OK;
}

/* Meets the directories of record i that are new, of which `shared` bytes are not, and the file. */
static enum sbx_status add_record(struct tree *tree, uint32_t i, uint32_t shared,
                                  struct sbx_error *err)
{
    const struct sbx_record *r = &tree->records[i];
    uint32_t at = 0, parent = 0, node;
    const char *slash;
    enum sbx_status st;

    while (tree->n_steps > 0 && tree->steps[tree->n_steps - 1].end >= shared)
        tree->n_steps--;
    if (tree->n_steps > 0) {
        at = tree->steps[tree->n_steps - 1].end + 1;
        parent = tree->steps[tree->n_steps - 1].node;
    }
    while ((slash = memchr(r->path + at, '/', r->path_len - at))) {
        uint32_t end = (uint32_t)(slash - r->path);

        st = meet(tree, (struct node){parent, i, end, end - at, 0, {0}}, &node, err);
        if (!st)
            st = sbx_array_grow((void **)&tree->steps, &tree->cap_steps, tree->n_steps + 1,
                                SIZE_MAX / sizeof(*tree->steps), sizeof(*tree->steps), err);
        if (st)
            return st;
        tree->steps[tree->n_steps++] = (struct step){end, node};
        at = end + 1;
        parent = node;
    }
    return meet(tree, (struct node){parent, i, r->path_len, r->path_len - at, 0, {0}},
                &tree->leaf[i], err);
}

static enum sbx_status build(struct tree *tree, size_t n, const unsigned char *verdicts,
                             struct sbx_error *err)
{
    const struct sbx_record *last = NULL;
    enum sbx_status st;

    for (size_t i = 0; i < n; i++) {
        const struct sbx_record *r = &tree->records[i];

        if (!counts(verdicts[i]))
            continue;
        st = add_record(tree, (uint32_t)i, last ? common(last, r) : 0, err);
        if (st)
            return st;
        last = r;
    }
    return SBX_OK;
}

/* Numbers the names with several spellings, hands the number down to all nodes below (a parent is
 * always older), and makes room for the spellings. ends[] begins as where each name's start. */
static enum sbx_status name_nodes(struct tree *tree, struct sbx_pre_alias *alias,
                                  struct sbx_error *err)
{
    uint32_t spellings = 0;
    enum sbx_status st;

    for (size_t i = 1; i < tree->n_nodes; i++) {
        struct node *node = &tree->nodes[i];
        uint32_t met = node->met;

        if (met < 2) {
            node->name = tree->nodes[node->parent].name;
            continue;
        }
        st = sbx_array_grow((void **)&alias->ends, &alias->cap_ends, alias->n_names + 1,
                            tree->n_nodes, sizeof(*alias->ends), err);
        if (st)
            return st;
        alias->ends[alias->n_names++] = spellings;
        node->name = (uint32_t)alias->n_names;
        spellings += met;
    }
    return sbx_array_grow((void **)&alias->spellings, &alias->cap_spellings, spellings, spellings,
                          sizeof(*alias->spellings), err);
}

/* Adds the spellings that record i is the first under, `shared` bytes of it having been seen. */
static void add_spellings(const struct tree *tree, uint32_t i, uint32_t shared,
                          struct sbx_pre_alias *alias)
{
    const char *path = tree->records[i].path;
    uint32_t len = tree->records[i].path_len, at = tree->leaf[i];

    for (;;) {
        const struct node *node = &tree->nodes[at];
        const char *slash;

        if (node->name != tree->nodes[node->parent].name)
            alias->spellings[alias->ends[node->name - 1]++] = (struct sbx_pre_spelling){i, len};
        slash = len > shared ? memrchr(path + shared, '/', len - shared) : NULL;
        if (!slash)
            return;
        len = (uint32_t)(slash - path);
        at = node->parent;
    }
}

/* Each name's spellings arrive in path order, and those under one directory together: the one that
 * a record stands under is the last that its name got. */
static enum sbx_status collect(const struct tree *tree, size_t n, unsigned char *verdicts,
                               struct sbx_pre_alias *alias, struct sbx_error *err)
{
    const struct sbx_record *last = NULL;
    enum sbx_status st;

    for (size_t i = 0; i < n; i++) {
        const struct sbx_record *r = &tree->records[i];
        uint32_t name;

        if (!counts(verdicts[i]))
            continue;
        name = tree->nodes[tree->leaf[i]].name;
        if (name > 0) {
            add_spellings(tree, (uint32_t)i, last ? common(last, r) : 0, alias);
            verdicts[i] &= (unsigned char)~SBX_PRE_POSIX_TAKES;
        }
        if (name > 0 && verdicts[i] == SBX_REASON_NONE) {
            st = sbx_array_grow((void **)&alias->members, &alias->cap_members, alias->n_members + 1,
                                n, sizeof(*alias->members), err);
            if (st)
                return st;
            alias->members[alias->n_members++] =
                (struct sbx_pre_member){(uint32_t)i, alias->ends[name - 1] - 1};
            verdicts[i] = SBX_REFUSE_ALIAS;
        }
        last = r;
    }
    return SBX_OK;
}

enum sbx_status sbx_pre_alias_find(const struct sbx_record *records, size_t n,
                                   uint64_t max_directories, unsigned char *verdicts,
                                   struct sbx_pre_alias *ret, struct sbx_error *err)
{
    SBX_CLEANUP(tree_done) struct tree tree = {0};
    SBX_PRE_ALIAS_AUTO struct sbx_pre_alias alias = {0};
    size_t directories = 0;
    enum sbx_status st;

    st = count_directories(records, n, verdicts, max_directories, &directories, err);
    if (!st)
        st = tree_init(&tree, records, n, directories, err);
    if (!st)
        st = build(&tree, n, verdicts, err);
    if (!st)
        st = name_nodes(&tree, &alias, err);
    if (!st)
        st = collect(&tree, n, verdicts, &alias, err);
    if (st)
        return st;
    *ret = alias;
    alias = (struct sbx_pre_alias){0};
    return SBX_OK;
}

void sbx_pre_alias_done(struct sbx_pre_alias *alias)
{
    free(alias->spellings);
    free(alias->ends);
    free(alias->members);
    *alias = (struct sbx_pre_alias){0};
}

static int member_cmp(const void *key, const void *element)
{
    const size_t *i = key;
    const struct sbx_pre_member *member = element;

    return (*i > member->record) - (*i < member->record);
}

size_t sbx_pre_alias_others(const struct sbx_pre_alias *alias, size_t i, size_t most,
                            struct sbx_pre_spelling *ret)
{
    const struct sbx_pre_member *member = NULL;
    size_t low = 0, high = alias->n_names, n = 0;

    if (alias->n_members > 0)
        member = bsearch(&i, alias->members, alias->n_members, sizeof(*member), member_cmp);
    if (!member)
        return 0;
    while (low < high) {
        size_t half = low + (high - low) / 2;

        if (alias->ends[half] > member->spelling)
            high = half;
        else
            low = half + 1;
    }
    for (size_t s = low > 0 ? alias->ends[low - 1] : 0; s < alias->ends[low] && n < most; s++) {
        if (s != member->spelling)
            ret[n++] = alias->spellings[s];
    }
    return n;
}
