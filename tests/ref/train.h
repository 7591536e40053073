/* Training by interpretation: what the importer and the passes made of a
 * model, on as many ranks as its graph has, and without a line of generated
 * code.
 */
#ifndef TESTS_REF_TRAIN_H
#define TESTS_REF_TRAIN_H

#include "frontend/driver/opts.h"
#include "frontend/import/import.h"
#include "tests/ref/spmd.h"

enum { RUN_INPUTS = 64 };

/* What `setup` gives an input: n times its size. */
struct given {
	ValId of;
	const char *raw;
	size_t size, n;
};

struct run {
	const char *dir;                /* of the file `setup` and of results */
	Arena *arena;
	Diag *diag;
	struct cli cli;
	struct onnx_file *file;         /* contents that the graph points to */
	Graph *g;
	double strategy_sec;            /* cost of its sharding strategy */
	int nrunner_up;                 /* see struct Pass */
	const struct runner_up *runner_up;
	struct spmd *s;
	struct interp_env env;
	int steps;
	int ninput;
	struct given input[RUN_INPUTS];
	double loss;                    /* of the last step */
	struct pipeline *pipeline;      /* the stages that it was cut into */
	bool part;                      /* of a pipeline: inputs that it lacks
	                                 * are passed over */
	bool quiet;                     /* nothing is said of what fails */
	FILE *nowhere;                  /* where it goes */
};

/* A file of DIR; ends the program if it cannot be. */
FILE *run_file(struct run *, const char *name, const char *mode);
/* From now on the classifier takes that many rows at a time. */
void run_loss_rows(int64_t rows);
/* argv: a name and ckc's arguments.  Of a graph in text passes run only if an
 * argument asks for some.  0 or an exit status, after which run_close is
 * still right. */
int run_open(struct run *, int argc, char **argv);
/* The same in two steps, between which r->cli may be changed: CLI_GO or an
 * exit status; whether it worked. */
int run_parse(struct run *, int argc, char **argv);
int run_parse_line(struct run *, const char *words);
bool run_compile(struct run *);
/* Instead of compiling: a graph at hand, which is the run's from now on. */
void run_adopt(struct run *, Graph *);
/* Lines of DIR/setup: "input NAME FILE" (raw elements in the input's dtype),
 * "below NAME N", "steps N", "seed N", "round half" (see interp_env), "lr X",
 * "clip X", "beta1 X", ... */
bool run_setup(struct run *);
/* Random numbers for what has no contents: what has the same name gets the
 * same; integers are below what `setup` says, or 2. */
void run_fill(struct run *);
/* One step; what `setup` gives an input may be as many times as large as there
 * are micro-batches. */
bool run_step(struct run *, int step);
/* Set the inputs of a micro-batch. */
void run_feed(struct run *, int64_t micro);
Shape run_shape(const struct run *, ValId);     /* of the whole */
int64_t run_elements(const struct run *, ValId);
/* The whole contents in the run's arena; NULL after a message. */
double *run_get(struct run *, ValId);
void run_close(struct run *);

#endif
