/* A stream of the emulated GPU, which its driver, its libraries and emulated
 * kernels share: work is carried out at once, or kept: in the graph that is
 * being captured, or in the stream's queue, by a driver that is late and behind
 * what another GPU has not done yet.
 */
#ifndef TESTS_CUDA_STREAM_H
#define TESTS_CUDA_STREAM_H

enum { FAKE_STREAMS = 16 };

/* How many works of each stream have been captured. */
struct fake_clock {
	unsigned long n[FAKE_STREAMS];
};

struct fake_work {
	struct fake_work *next;
	unsigned on;                    /* of a graph: the stream; */
	struct fake_clock after;        /* runs behind so many works of each */
	int (*ready)(void *);           /* done or to be run; NULL: always */
	void (*run)(void *);            /* NULL: nothing more */
	void (*drop)(void *);
	void *arg;
};

struct fake_stream {
	struct fake_work **end;         /* of what is kept; NULL: nothing is */
	struct fake_work *first;        /* of what is captured */
	unsigned long capturing;        /* number of the capture; 0: none */
	struct fake_stream *origin;     /* whose capture that is */
	unsigned number;
	struct fake_clock clock;        /* what is captured next runs behind */
	int invalid;                    /* what is captured: it is dropped */
	struct fake_work *queue, **queue_end;
	unsigned long given, done;      /* works of the queue */
	struct fake_stream *next;       /* of all */
	/* Memory of the GPU can be touched between the two alone: by what
	 * runs there. */
	void (*enter)(void);
	void (*leave)(void);
	/* 0, or the error of a thread without a current context. */
	int (*current)(void);
	/* Take over arg, to be run and in the end dropped. */
	void (*keep)(struct fake_stream *, void (*run)(void *),
	             void (*drop)(void *), void *arg);
	/* The same of what is asked again and again until it has been done,
	 * also on a stream that keeps nothing. */
	void (*keep_until)(struct fake_stream *, int (*ready)(void *),
	                   void (*drop)(void *), void *arg);
};

#endif
