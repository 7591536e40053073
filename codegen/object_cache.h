/* Objects of units that were compiled before, in a folder of the user's.
 *
 * Most units are the same text for all models.  An object is found again by the
 * unit's text, the texts that it includes, the compiler and its arguments, and
 * the processor.  Nothing is kept if the user's arguments or variables name
 * other files, or if a program is a script.  A failure in the folder is a miss,
 * not an error.
 *
 *	CKC_CACHE=DIR	the folder (default: ckc in XDG_CACHE_HOME, else
 *			~/.cache/ckc); "off": there is none
 */
#ifndef CODEGEN_OBJECT_CACHE_H
#define CODEGEN_OBJECT_CACHE_H

#include "codegen/cc.h"
#include "codegen/sources.h"

#include <stdint.h>

struct object_cache {
	const char *dir;                /* NULL: nothing is kept */
	uint64_t base[2];               /* hash of what all units share */
	const struct sources *sources;
	Arena *arena;
};

/* The folder; NULL: it is off, or cannot be used. */
const char *object_cache_folder(Arena *);
/* The cache for units of these sources, compiled by a command that begins
 * so. */
struct object_cache object_cache_open(const struct sources *,
                                      const struct command *, Arena *);
/* The file in the cache for a unit's object; NULL: there is no cache. */
const char *object_cache_path(const struct object_cache *,
                              const struct source_file *unit);
/* Copy an object from the cache; false: it is not there. */
bool object_cache_take(const char *path, const char *object);
/* Copy an object to the cache. */
void object_cache_put(const char *path, const char *object);
/* After objects were added: remove those that were not used for longest, if
 * all together are too large. */
void object_cache_trim(const struct object_cache *);

#endif
