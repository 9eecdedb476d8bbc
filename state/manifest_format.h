/* How a manifest is spelled; shared by reading and writing. Any JSON reader can use the file:
 *
 *   {"schema":"sbx-sync/manifest/1","identity":"…","names":"portable"}
 *   {"path":"a/b.txt","size":3,"mtime":"1764500000.250000000","ctime":"…",
 *    "ino":"1234","host_size":3,"host_mtime":"…","host_ctime":"…","digest":"blake2b-256:…"}
 *   {"lines":1,"blake2b-256":"…"}
 *
 * A time is signed seconds, a point, and nine digits that count forward. "identity_b64" stands for
 * an identity that is not UTF-8. An inode is text, since JSON numbers end at 2^63 here. The members
 * from "ino" to "digest" come together or not at all; "young", "unstable" (true) and "last"
 * ("refused", "deferred", "failed") only where they apply. Unknown members are passed over. */
#ifndef STATE_MANIFEST_FORMAT_H
#define STATE_MANIFEST_FORMAT_H

#include <stddef.h>

#include "sbx/verdict.h"

#define SBX_MANIFEST_FILE "manifest.jsonl"
#define SBX_MANIFEST_FAMILY "sbx-sync/manifest/"
#define SBX_MANIFEST_SCHEMA SBX_MANIFEST_FAMILY "1"
#define SBX_MANIFEST_DIGEST "blake2b-256"
#define SBX_MANIFEST_TRAILER 512u /* bytes at the end in which the trailer line must be */

#define SBX_MANIFEST_NAMES_PORTABLE "portable"
#define SBX_MANIFEST_NAMES_POSIX "posix"

/* How "last" spells an outcome; NULL for those that are not recorded. */
static inline const char *sbx_manifest_last(enum sbx_outcome outcome)
{
    switch (outcome) {
    case SBX_REFUSED:
        return "refused";
    case SBX_DEFERRED:
        return "deferred";
    case SBX_FAILED:
        return "failed";
    default:
        return NULL;
    }
}

#endif
