/* What the scripts are tried on: a tree of files with names of every kind, and directories of every
 * kind to begin at. */
#ifndef TESTS_UNIT_LISTING_TREE_H
#define TESTS_UNIT_LISTING_TREE_H

#include "base/attr.h"
#include "tests/unit/listing/box.h"

#define MAX_FILES 400

/* The regular files of `tree` in the box, in path order. */
struct tree {
    struct sbx_record files[MAX_FILES];
    char paths[MAX_FILES][300];
    size_t n;
};

static inline void tree_file(struct tree *tree, const struct box *box, const char *path, size_t n)
{
    char name[320];

    (void)snprintf(name, sizeof(name), "tree/%s", path);
    box_file(box, name, n);
    (void)snprintf(tree->paths[tree->n], sizeof(tree->paths[0]), "%s", path);
    tree->n++;
}

static inline int tree_cmp(const void *a, const void *b)
{
    const struct sbx_record *x = a, *y = b;

    return sbx_list_path_cmp(x->path, x->path_len, y->path, y->path_len);
}

/* Every byte that a name may have, as a name of its own where it can, and in the middle of one. */
static inline void tree_bytes(struct tree *tree, const struct box *box)
{
    for (int c = 1; c < 256; c++) {
        char name[] = {(char)c, '\0'};

        if (c != '/' && c != '.')
            tree_file(tree, box, name, (size_t)c);
    }
}

static inline void tree_make(struct tree *tree, const struct box *box)
{
    static const char *const names[] = {
        "-a",     "-name",  "--help", "!=",   "(x",           "-o",      "%s",   "\\n",
        "\\0101", "$(id)",  "`id`",   "a;b",  " lead",        "trail ",  "nl\n", "\nnl\n\n",
        "a\tb",   "a'b\"c", ".hid",   "..x",  "end 0",        "1 2 3 x", "*.c",  "[x]",
        "dir/x",  "dir/-x", "-d/-x",  "!d/(", "dir/e\n/f g/h"};
    char longest[256];

    box_mkdir(box, "tree", 0755);
    box_mkdir(box, "tree/dir", 0755);
    box_mkdir(box, "tree/-d", 0755);
    box_mkdir(box, "tree/!d", 0755);
    box_mkdir(box, "tree/dir/e\n", 0755);
    box_mkdir(box, "tree/dir/e\n/f g", 0755);
    box_mkdir(box, "tree/empty", 0755);
    tree_bytes(tree, box);
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        tree_file(tree, box, names[i], i * 1000);
    memset(longest, 'l', sizeof(longest) - 1);
    longest[255] = '\0';
    tree_file(tree, box, longest, 0);
    tree_file(tree, box, "long ago", 3);
    box_mtime(box, "tree/long ago", -5, 250000000);
    tree_file(tree, box, "year 2100", 3);
    box_mtime(box, "tree/year 2100", 4102444800, 1);
    tree_file(tree, box, "whole second", 3);
    box_mtime(box, "tree/whole second", 1000000000, 0);
    box_must(symlink("long ago", at(box, "tree/link")) == 0, "symlink");
    box_must(symlink("dir", at(box, "tree/dirlink")) == 0, "symlink");
    box_must(symlink("nowhere", at(box, "tree/dangling")) == 0, "symlink");
    box_must(mkfifo(at(box, "tree/fifo"), 0644) == 0, "mkfifo");
    for (size_t i = 0; i < tree->n; i++) {
        char name[320];

        (void)snprintf(name, sizeof(name), "tree/%s", tree->paths[i]);
        tree->files[i] = box_record(box, name, tree->paths[i]);
    }
    qsort(tree->files, tree->n, sizeof(tree->files[0]), tree_cmp);
}

/* Three files in a directory of any name. */
static inline void tree_small(const struct box *box, const char *name)
{
    char path[128];

    box_mkdir(box, name, 0755);
    for (const char *f = "abc"; *f; f++) {
        (void)snprintf(path, sizeof(path), "%s/%c", name, *f);
        box_file(box, path, 1);
    }
}

/* Files that a transport keeps while a script runs, and others with names like theirs. */
static inline void tree_kept(const struct box *box)
{
    static const char *const names[] = {
        "kept/0f1e.stdout",  "kept/0f1e.stderr", "kept/0f1e.std",    "kept/d/0f1e.stdout",
        "kept/0f1e.stdin",   "kept/0f1estdout",  "kept/0f1f.stdout", "kept/x0f1e.stdout",
        "kept/0f1e.std.d/a", "kept/a",           "kept/-x *",
    };

    box_mkdir(box, "kept", 0755);
    box_mkdir(box, "kept/d", 0755);
    box_mkdir(box, "kept/0f1e.std.d", 0755);
    for (size_t i = 0; i < N_ELEMENTS(names); i++)
        box_file(box, names[i], 1);
    box_must(symlink("nowhere", at(box, "kept/0f1e.stdlink")) == 0, "symlink");
    box_must(mkfifo(at(box, "kept/0f1e.stdfifo"), 0644) == 0, "mkfifo");
    box_must(mkfifo(at(box, "kept/fifo"), 0644) == 0, "mkfifo");
}

static inline void tree_roots(const struct box *box)
{
    tree_small(box, "small");
    tree_small(box, "-d");
    tree_small(box, "a'b\"$(id)\n c");
    tree_small(box, "node_modules");
    box_must(symlink("small", at(box, "link")) == 0, "symlink");
    box_must(symlink("nowhere", at(box, "dangling")) == 0, "symlink");
    box_mkdir(box, "empty", 0755);
    box_file(box, "file", 1);
    box_mkdir(box, "private", 0700);
    box_mkdir(box, "private/in", 0755);
    box_mkdir(box, "unlisted", 0711);
    tree_small(box, "partly");
    box_mkdir(box, "partly/private", 0700);
    box_file(box, "partly/private/x", 1);
    tree_kept(box);
    tree_small(box, "prune");
    for (const char *const *p =
             (const char *const[]){"x", "[ab]", "a*", "a", "q'q", "back\\", NULL};
         *p; p++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "prune/%s.d", *p);
        box_mkdir(box, path, 0755);
        (void)snprintf(path, sizeof(path), "prune/%s.d/f", *p);
        box_file(box, path, 1);
    }
}

#endif
