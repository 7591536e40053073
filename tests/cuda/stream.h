/* A stream of the emulated GPU, which its driver, its library of products and
 * emulated kernels share: work is carried out at once, or kept in the graph
 * that is being captured.
 */
#ifndef TESTS_CUDA_STREAM_H
#define TESTS_CUDA_STREAM_H

struct fake_work {
	struct fake_work *next;
	void (*run)(void *);
	void (*drop)(void *);
	void *arg;
};

struct fake_stream {
	struct fake_work **end;         /* of what is captured; NULL: nothing
	                                 * is */
	struct fake_work *first;
	/* Memory of the GPU can be touched between the two alone: by what
	 * runs there. */
	void (*enter)(void);
	void (*leave)(void);
	/* Take over arg, to be run and in the end dropped. */
	void (*keep)(struct fake_stream *, void (*run)(void *),
	             void (*drop)(void *), void *arg);
};

#endif
