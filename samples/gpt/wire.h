/* Just enough of ONNX's wire format to write a model. */
#ifndef GPT_WIRE_H
#define GPT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { NAME = 96 };

/* Names are passed around by value. */
struct name {
	char s[NAME];
};

struct buf {
	uint8_t *p;
	size_t n, cap;
};

struct model {
	struct buf node, init, input, output, attr;     /* attr: of the next node */
	FILE *data;                     /* weights; NULL: names a file only */
	const char *location;           /* that file's name */
	int64_t offset;                 /* end of the weights so far */
	int64_t nparam;
	uint64_t seed;
	int nconst;
	bool failed;                    /* out of memory, or a write failed */
};

struct name name_of(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* Attributes wait for the next op. */
void attr_int(struct model *, const char *name, int64_t);
void attr_str(struct model *, const char *name, const char *);
void attr_float(struct model *, const char *name, float);
void attr_ints(struct model *, const char *name, int n, const int64_t *);

/* A node with one output called `out`, which is also the node's name; inputs
 * are C strings up to NULL. */
struct name op(struct model *, const char *type, struct name out, ...);
/* A node with n equal outputs out.0, out.1, ...: Split along the axis. */
void op_split(struct model *, struct name out, const char *in, int64_t axis,
              int n);

struct name const_ints(struct model *, int n, const int64_t *);
struct name const_int(struct model *, int64_t);
struct name const_float(struct model *, float);
struct name const_true(struct model *);

/* A weight: normally distributed with mean and deviation. */
struct name weight(struct model *, struct name, int rank, const int64_t *dim,
                   float mean, float deviation);
void graph_input(struct model *, const char *name, int rank,
                 const int64_t *dim);
void graph_output(struct model *, const char *name);
/* The whole file; frees the model's buffers. */
bool model_write(struct model *, const char *graph, FILE *);

#endif
