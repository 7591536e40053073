/* Tensor files that all processes of a run read or write, and the gathering of
 * tensors that are sharded over processes. */
#ifndef RUNTIME_MODEL_FILES_H
#define RUNTIME_MODEL_FILES_H

#include "runtime/ranks/chunked_comm.h"
#include "runtime/model/rt.h"

/* ---- infile.c: a file that each process reads, if it can see it ---- */

struct infile {
	struct array_file f;            /* open unless `far` */
	bool read_for;                  /* the first process reads for all */
	bool far;                       /* ... and this is another process */
	bool alone;                     /* a file of adapters: tensors that it
	                                 * lacks keep their values */
	bool mapped;                    /* names are mapped to the model's */
	unsigned char *leave;           /* [nshared]: tensors that keep their
	                                 * values; NULL: none */
};

/* The first process must see the file, the others may. */
ckr_status infile_open(ckr_ctx *, const char *path, struct infile *);
void infile_close(struct infile *);
/* Treat it as a file of adapters if all its tensors belong to adapters or have
 * PEFT names, which are mapped to the model's. */
ckr_status infile_map_adapters(ckr_ctx *, struct infile *);
/* Whether the tensor is a factor of an adapter. */
bool files_is_adapter(const ckr_ctx *, uint32_t tensor);
/* Mark weights that keep their values: adapters that the file lacks, and for a
 * file of adapters all other tensors that it lacks. */
ckr_status infile_mark_kept(ckr_ctx *, struct infile *);
/* Send the first process's marks to all. */
ckr_status infile_agree(ckr_ctx *, struct infile *);
/* Read a tensor of program[0] from an array of its shape, converted.  For a far
 * file the array is NULL.  All processes call this, also after a failure. */
ckr_status infile_read_tensor(ckr_ctx *, const struct infile *,
                              const struct array *, const struct ckr_tensor *);
/* Whether infile_read_tensor would succeed: the same without writing. */
ckr_status infile_check_tensor(ckr_ctx *, const struct infile *,
                               const struct array *, const struct ckr_tensor *);

/* ---- tensor_writer.c: one file that all processes write ---- */

struct tensor_writer {
	struct st_writer w;
	bool far;                       /* the first process writes for all */
};

/* All processes make every call. */
ckr_status writer_begin(ckr_ctx *, struct tensor_writer *, const char *path,
                        const struct st_entry *, size_t n,
                        const struct meta *, size_t nmeta);
/* Write the tensor's value to an entry of its type.  scale not NULL: the entry
 * is float32 and gets the value times *scale. */
ckr_status writer_put_tensor(ckr_ctx *, struct tensor_writer *, size_t entry,
                             const struct loaded_program *,
                             const struct ckr_tensor *, const float *scale);
/* Give the file its name, unless a process failed. */
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

ckr_status gather_begin(struct tensor_gather *, ckr_ctx *,
                        const struct loaded_program *,
                        const struct ckr_tensor *);
/* Get elements at .. at + n - 1 of the whole tensor.  Ranges come in order;
 * n <= most. */
ckr_status gather_next(struct tensor_gather *, uint64_t at, uint64_t n,
                       void *out);
void gather_end(struct tensor_gather *);
/* The whole tensor in one call. */
ckr_status gather_all(ckr_ctx *, const struct loaded_program *,
                      const struct ckr_tensor *, char *dense);

/* ---- export.c ---- */

/* Prefix of a module's tensors in PEFT's files. */
#define PEFT_PREFIX "base_model.model."

/* CKR_EUNSUPPORTED in a run of several processes: merging needs the whole
 * weight. */
ckr_status files_may_merge(ckr_ctx *);
/* *copy: the whole weight with its adapter merged, which the caller frees;
 * NULL: it has no adapter. */
ckr_status files_merged(ckr_ctx *, const struct ckr_tensor *, void **copy);

/* Metadata of files that hold adapters: the scale of the first adapter, and a
 * hash of the names and scales of all. */
#define SCALES_KEY "lora_scales"
enum { SCALES_TEXT = 48 };
void files_scales(const ckr_ctx *, char text[SCALES_TEXT]);
/* CKR_EFORMAT if the file's adapters have other scales, according to its
 * metadata; for a file of PEFT, according to its configuration. */
ckr_status files_need_scales(ckr_ctx *, const struct array_file *);
ckr_status files_need_peft_scales(ckr_ctx *, const struct array_file *);

/* ---- tune/peft_config.c ---- */

/* Write adapter_config.json beside a file of adapters.  list: the n tensors of
 * program[0] in the file. */
ckr_status peft_config_write(ckr_ctx *, const char *adapters,
                             const uint32_t *list, uint32_t n);

/* ---- checkpoint.c ---- */

/* Write the listed tensors of program[0] under the names PREFIX NAME. */
ckr_status files_write(ckr_ctx *, const char *path, const char *prefix,
                       const uint32_t *list, size_t n, const struct meta *,
                       size_t nmeta);

/* Load all parameters and buffers but the marked ones from n files, or nothing.
 * The context then knows the marked ones. */
ckr_status files_load_weights(ckr_ctx *, struct infile *, size_t n);

#endif
