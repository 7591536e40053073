/* Internals of files, shared by the files of this room: tensor files that all
 * processes of a run read or write. */
#ifndef RUNTIME_FILES_INSIDE_H
#define RUNTIME_FILES_INSIDE_H

#include "runtime/base/pace.h"
#include "runtime/file/array.h"
#include "runtime/files/files.h"
#include "runtime/library/tensor.h"

struct files {
	struct err *err;                /* the world's */
	const struct ckr_library *lib;
	struct world *world;
	struct stepping *steps;
	struct err unread;              /* unused tensors of the last file */
	unsigned char *left;            /* [nshared]: weights that the last file
	                                 * of weights lacks; NULL: none */
	struct grads *grads;            /* to write in the next step; NULL */
	struct async_save *async;       /* beside training; NULL: none yet */
};

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
ckr_status infile_open(struct files *, const char *path, struct infile *);
void infile_close(struct infile *);
/* Treat it as a file of adapters if all its tensors belong to adapters or have
 * PEFT names, which are mapped to the model's. */
ckr_status infile_map_adapters(struct files *, struct infile *);
/* Mark weights that keep their values: adapters that the file lacks, and for a
 * file of adapters all other tensors that it lacks. */
ckr_status infile_mark_kept(struct files *, struct infile *);
/* Send the first process's marks to all. */
ckr_status infile_agree(struct files *, struct infile *);
/* Read a tensor of program[0] from an array of its shape, converted.  For a far
 * file the array is NULL.  All processes call this, also after a failure. */
ckr_status infile_read_tensor(struct files *, const struct infile *,
                              const struct array *, const struct ckr_tensor *);
/* Whether infile_read_tensor would succeed: the same without writing. */
ckr_status infile_check_tensor(struct files *, const struct infile *,
                               const struct array *, const struct ckr_tensor *);
/* Record for files_unused_tensors the tensors of a file that the model does not
 * use, among those that `want` wants. */
typedef bool want_fn(const struct ckr_tensor *);
void infile_note_unread(struct files *, const struct array_file *, want_fn *);

/* ---- staging.c: what a process writes of a file, in host memory ---- */

struct staging {
	struct device *device;          /* whose tensors are copied */
	int threads;
	char *bytes;                    /* [size]; NULL: not yet allocated */
	uint64_t size, used;
	struct file_range *range;       /* [nrange]: where in the file the used
	                                 * bytes go, in their order */
	size_t nrange, most;
	bool counting;                  /* puts only count */
};

/* Start anew.  count: puts count bytes and ranges without copying. */
void staging_begin(struct staging *, bool count);
/* n bytes for the file, from its offset `at` on.  on_device: at an address of
 * the device; complete after staging_sync.  Needs the memory that counting the
 * same puts has reserved. */
ckr_status staging_put(struct staging *, uint64_t at, const void *, uint64_t n,
                       bool on_device, struct err *);
/* Allocate what puts have counted, unless it is there. */
ckr_status staging_reserve(struct staging *, struct err *);
ckr_status staging_sync(struct staging *, struct err *);
/* From any thread; pace: NULL: without rests. */
ckr_status staging_write(const struct staging *, int fd, const char *path,
                         struct pace *, struct err *);
void staging_free(struct staging *);

/* ---- owners.c: who writes what ---- */

/* Whether local rank r writes the tensor of entry i, or its shard of it, if
 * processes write it without others. */
bool owner_writes(const struct world *, size_t i, const struct ckr_tensor *,
                  uint32_t r);
/* Whether they do; parts: to files of their own.  Else the first process
 * gathers it. */
bool owner_alone(const struct world *, bool parts, const struct ckr_tensor *);
/* Whether this process's part has all of entry i with the tensor, or the shard
 * of its rank; neither: others have it. */
bool owner_has_all(const struct files *, size_t i, const struct ckr_tensor *);
bool owner_has_shard(const struct files *, size_t i,
                     const struct ckr_tensor *);

/* ---- tensor_writer.c: one file that all processes write ---- */

struct tensor_writer {
	struct st_writer w;
	bool far;                       /* the first process writes for all */
	struct staging *staging;        /* gets the data; NULL: the file does */
	struct part_save *part;         /* a file of this process alone; NULL:
	                                 * all write one */
	struct pace *pace;              /* of what part_place reads; NULL */
};

/* The entry of a file for a tensor under this name.  Blocks of quantised
 * weights are entered as bytes along the last dim if `stored`, else as the
 * float32 weights that they hold. */
struct st_entry writer_entry(const struct files *, const struct ckr_tensor *,
                             const char *name, bool stored);
/* All processes make every call. */
ckr_status writer_begin(struct files *, struct tensor_writer *,
                        const char *path, const struct st_entry *, size_t n,
                        const struct meta *, size_t nmeta);
/* Write the tensor's value to its entry.  scale not NULL: the entry is float32
 * and gets the value times *scale. */
ckr_status writer_put_tensor(struct files *, struct tensor_writer *,
                             size_t entry, const struct loaded_program *,
                             const struct ckr_tensor *, const float *scale);
/* Give the file its name, unless a process failed. */
ckr_status writer_commit(struct files *, struct tensor_writer *, ckr_status);
void writer_abort(struct tensor_writer *);

/* A whole file: tensors of program[0] under the names PREFIX NAME. */
struct contents {
	const char *path, *prefix;
	bool parts;                     /* path is a folder of parts */
	bool stored;                    /* of blocks: see writer_entry */
	const uint32_t *list;           /* [n]: tensors */
	size_t n;
	const struct meta *meta;
	size_t nmeta;
};

/* Begin the file; then put its tensors. */
ckr_status writer_begin_contents(struct files *, struct tensor_writer *,
                                 const struct contents *);
ckr_status writer_put_contents(struct files *, struct tensor_writer *,
                               const struct contents *);
/* Both, and commit. */
typedef ckr_status write_fn(struct files *, const struct contents *);
write_fn writer_write;

/* ---- parts_writer.c: the same as a file for each process ---- */

/* writer_begin, with the entries of whole tensors. */
ckr_status part_begin(struct files *, struct tensor_writer *,
                      const struct contents *, struct st_entry *);
/* Flush this process's part and give it its name; then, if there is no other
 * process, complete the save.  Both from any thread. */
ckr_status part_place(struct tensor_writer *, struct err *);
ckr_status part_finish_alone(struct tensor_writer *, struct err *);
/* The same by all processes: writer_commit. */
ckr_status part_commit(struct files *, struct tensor_writer *, ckr_status);
void part_abort(struct tensor_writer *);

/* ---- async_save.c: the same beside training ---- */

/* Copy the contents, and begin to write them; or only allocate the memory that
 * this needs, and check that the file can be written.  No other save is being
 * written: files_save_wait. */
write_fn async_save_start, async_save_reserve;
/* Wait for the thread, and drop a file that has no name yet. */
void async_save_close(struct files *);

/* ---- lora.c: low-rank adapters ---- */

/* Prefix of a module's tensors in PEFT's files. */
#define PEFT_PREFIX "base_model.model."

/* Whether the shared tensor is a matrix of an adapter. */
bool lora_owns(const struct ckr_library *, uint32_t tensor);
/* CKR_EUNSUPPORTED in a run of several processes: merging needs the whole
 * weight. */
ckr_status lora_may_merge(struct files *);
/* *x: the whole tensor as float32, of blocks their weights, which the caller
 * frees, also after a failure. */
ckr_status lora_read_floats(struct files *, const struct ckr_tensor *,
                            float **x);
/* *copy: the whole weight with its adapter merged, which the caller frees, of
 * the tensor's type, for blocks float32; NULL: it has no adapter. */
ckr_status lora_merge(struct files *, const struct ckr_tensor *, void **copy);

/* Metadata of files that hold adapters: the scale of the first adapter, and a
 * hash of the names and scales of all. */
#define SCALES_KEY "lora_scales"
enum { SCALES_TEXT = 48 };
void lora_scales(const struct files *, char text[SCALES_TEXT]);
/* CKR_EFORMAT if the file's adapters have other scales, according to its
 * metadata; for a file of PEFT, according to its configuration. */
ckr_status lora_check_scales(struct files *, const struct array_file *);
ckr_status lora_check_peft_scales(struct files *, const struct array_file *);

/* ---- peft_config.c ---- */

/* Write adapter_config.json beside a file of adapters.  list: the n tensors of
 * program[0] in the file. */
ckr_status peft_config_write(struct files *, const char *adapters,
                             const uint32_t *list, uint32_t n);

/* ---- grads.c ---- */

void grads_free(struct files *);

/* ---- checkpoint.c ---- */

/* Load all parameters and buffers but the marked ones from n files, or nothing.
 * The model then knows the marked ones. */
ckr_status load_weight_files(struct files *, struct infile *, size_t n);

#endif
