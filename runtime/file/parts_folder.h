/* Checkpoints in a folder: a file for each process with the parts of tensors
 * that it wrote, and an index that names the files of one complete save.
 *
 *	DIR/00000-3.safetensors ... DIR/00007-3.safetensors
 *	DIR/complete.json
 *
 * Processes are numbered from 0; 3 is the number of the save.  All files of a
 * save are on disk before complete.json replaces that of the save before, whose
 * files are deleted after that.  So complete.json always names whole files.
 *
 * All parts list all tensors in the same order.  The metadata of a part have
 * for each tensor of which it does not hold all elements
 *
 *	"ckc.cut.NAME": "96,64; 0+32/64*96, ..."
 *
 * the shape of the whole, and the elements that the part holds, in row-major
 * order, as a tensor of one dimension.
 */
#ifndef RUNTIME_FILE_PARTS_FOLDER_H
#define RUNTIME_FILE_PARTS_FOLDER_H

#include "runtime/base/pace.h"
#include "runtime/file/stretch.h"

/* What complete.json says of a part. */
struct part_mark {
	uint64_t bytes;                 /* size of the file */
	uint64_t header, data;          /* hashes of the header, and of what
	                                 * is behind it */
};

#define PART_CUT "ckc.cut."

/* Stretches of a tensor in one part, at most: a first run, whole ones and a
 * last run for each segment that is sharded. */
enum { PARTS_STRETCHES = 3 * CKR_MAX_DIMS };

/* Whether the path names a folder: it ends with a slash, or is one. */
bool parts_in_folder(const char *path);
/* "DIR/00007-3.safetensors"; NULL: no memory.  Caller frees. */
char *parts_path(const char *dir, uint32_t process, uint64_t save);
/* Make the folder unless it is there. */
ckr_status parts_make_folder(const char *dir, struct err *);
/* *save: the number of the next save.  Fails for a complete.json of another
 * program. */
ckr_status parts_next_save(const char *dir, uint64_t *save, struct err *);
/* The size of a part and the hashes of its header and, if `data`, of what is
 * behind it.  pace: NULL: without rests. */
ckr_status parts_hash(int fd, const char *path, bool data, struct part_mark *,
                      struct pace *, struct err *);
/* Write complete.json: the parts of processes 0 .. n - 1 are on disk. */
ckr_status parts_complete(const char *dir, uint64_t save, uint64_t step,
                          const struct part_mark *, uint32_t n, struct err *);
/* Delete files of other saves: those of this process, the first process also
 * those of others.  Files that cannot be deleted remain. */
void parts_clean(const char *dir, uint64_t save, uint32_t process);
/* Make the folder `to` with links to the parts in `from` that this process has
 * written, and after all have done so, the first process with one to
 * complete.json. */
ckr_status parts_link(const char *from, const char *to, uint32_t process,
                      struct err *);
ckr_status parts_link_complete(const char *from, const char *to, struct err *);
/* Delete a folder that parts_link made: the first process complete.json, then
 * each process what parts_clean would, and whoever is last the folder. */
void parts_remove_complete(const char *dir);
void parts_remove(const char *dir, uint32_t process);

/* ---- parts_array.c: reading ---- */

/* Open the parts of a folder as one file of whole tensors.  Fails, and names
 * the part, unless they are those of one complete save and give each element of
 * each tensor once. */
ckr_status parts_open(struct array_file *, const char *dir, struct err *);
/* Elements first .. first + n - 1 as they are in the parts. */
ckr_status parts_read(const struct array_file *, const struct array *,
                      uint64_t first, uint64_t n, void *out, struct err *);
/* Read parts first, first + by, ... to their ends; fails, and names the part,
 * if one is not what was saved.  A file of another format has none. */
ckr_status parts_verify(const struct array_file *, uint32_t first, uint32_t by,
                        struct err *);

/* What complete.json says of n parts, which the caller frees. */
struct parts_index {
	uint64_t save, step;
	struct part_mark *mark;         /* [n] */
	uint32_t n;
};

bool parts_has_index(const char *dir);
ckr_status parts_read_index(const char *dir, struct parts_index *,
                            struct err *);

#endif
