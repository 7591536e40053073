/* Tensor files that all processes of a run read or write, and gathering of
 * tensors that are sharded over processes. */
#ifndef RUNTIME_MODEL_FILES_H
#define RUNTIME_MODEL_FILES_H

#include "runtime/ranks/chunked_comm.h"
#include "runtime/model/rt.h"

/* ---- infile.c: one that each reads, as far as it sees it ---- */

struct infile {
	struct array_file f;            /* open unless it is far */
	bool read_for;                  /* the first process reads for all */
	bool far;                       /* ... and this is another one */
	bool alone;                     /* adapters, and what was trained beside
	                                 * them: all else keeps its value */
	bool mapped;                    /* its names are not its own any more */
	unsigned char *leave;           /* [nshared]: tensors that keep their
	                                 * values; NULL: none */
};

/* The first process must see the file, the others may. */
ckr_status infile_open(ckr_ctx *, const char *path, struct infile *);
void infile_close(struct infile *);
/* Take it for adapters, if all it holds are theirs or has PEFT's names, which
 * are the model's then. */
ckr_status infile_map_adapters(ckr_ctx *, struct infile *);
/* That weights of adapters which it lacks keep their values; and, of a file of
 * adapters, all others that it lacks. */
ckr_status infile_mark_kept(ckr_ctx *, struct infile *);
/* What the first process has decided to leave holds for all. */
ckr_status infile_agree(ckr_ctx *, struct infile *);
/* The value of a tensor of program[0] from an array of its form, converted; far
 * files: NULL for it, and all come to this also after a failure. */
ckr_status infile_read_tensor(ckr_ctx *, const struct infile *,
                              const struct array *, const struct ckr_tensor *);
/* Whether that is possible: the same, to nowhere. */
ckr_status infile_check_tensor(ckr_ctx *, const struct infile *,
                               const struct array *, const struct ckr_tensor *);

/* ---- tensor_writer.c: one file to which each writes what it holds ---- */

struct tensor_writer {
	struct st_writer w;
	bool far;                       /* the first process writes for all */
};

/* Every call is made by all processes. */
ckr_status writer_begin(ckr_ctx *, struct tensor_writer *, const char *path,
                        const struct st_entry *, size_t n,
                        const struct meta *, size_t nmeta);
/* The tensor's value into an entry, which is of its type; or of float32, and
 * `scale` times it then. */
ckr_status writer_put_tensor(ckr_ctx *, struct tensor_writer *, size_t entry,
                             const struct bound *, const struct ckr_tensor *,
                             const float *scale);
/* The file appears, unless it went wrong on any of them. */
ckr_status writer_commit(ckr_ctx *, struct tensor_writer *, ckr_status);
void writer_abort(struct tensor_writer *);

/* ---- gather_tensor.c: all processes get the whole tensor ---- */

struct tensor_gather {
	ckr_ctx *c;
	const struct ckr_tensor *t;
	struct sharding sharding;       /* of a sharded tensor */
	struct sharding batch;          /* of a tensor that replicas split */
	uint64_t run;                   /* runs before this one are done */
	uint64_t most;                  /* elements of a range, at most */
	const char *local;              /* this process's shard */
	void *packed;                   /* copy of it without gaps; NULL: there
	                                 * are none */
	/* A sharded tensor: the group of ranks that hold shards, their number,
	 * the number of this one; [owners]: bytes of a range that each holds,
	 * and their offset in the group's buffer. */
	enum comm_group holders;
	uint32_t owners, mine;
	int *nbytes, *place;
	struct chunked_comm group;      /* collectives of the replica */
};

ckr_status gather_begin(struct tensor_gather *, ckr_ctx *, const struct bound *,
                        const struct ckr_tensor *);
/* Elements at .. at + n - 1 of the whole; ranges come in order; n <= most. */
ckr_status gather_next(struct tensor_gather *, uint64_t at, uint64_t n,
                       void *out);
void gather_end(struct tensor_gather *);
/* All of it. */
ckr_status gather_all(ckr_ctx *, const struct bound *,
                      const struct ckr_tensor *, char *dense);

/* ---- export.c ---- */

/* What files of a module with adapters by PEFT call a tensor of the module. */
#define PEFT_PREFIX "base_model.model."

/* CKR_EUNSUPPORTED where several processes run: merging is one's. */
ckr_status files_may_merge(ckr_ctx *);
/* A weight with its adapter merged into it, whole; *copy: to be freed.
 * NULL copy: it has none. */
ckr_status files_merged(ckr_ctx *, const struct ckr_tensor *, void **copy);

/* Metadata of files that hold adapters: what the first one is scaled by, and a
 * hash of names and scales of all. */
#define SCALES_KEY "lora_scales"
enum { SCALES_TEXT = 48 };
void files_scales(const ckr_ctx *, char text[SCALES_TEXT]);
/* CKR_EFORMAT if the file's adapters are scaled otherwise; and of a file of
 * PEFT's, by its configuration. */
ckr_status files_need_scales(ckr_ctx *, const struct array_file *);
ckr_status files_need_peft_scales(ckr_ctx *, const struct array_file *);

/* ---- tune/peft_config.c ---- */

/* adapter_config.json beside a file of adapters and of n tensors of program[0]
 * listed. */
ckr_status peft_config_write(ckr_ctx *, const char *adapters,
                             const uint32_t *list, uint32_t n);

/* ---- checkpoint.c ---- */

/* The tensors of program[0] listed, as they are now, called PREFIX NAME. */
ckr_status files_write(ckr_ctx *, const char *path, const char *prefix,
                       const uint32_t *list, size_t n, const struct meta *,
                       size_t nmeta);

/* All parameters and buffers but those to leave, which the context then
 * knows, from n files: all or nothing. */
ckr_status files_load_weights(ckr_ctx *, struct infile *, size_t n);

#endif
