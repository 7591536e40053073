/* The log of a run, row by row. */
#ifndef RUNTIME_CKRUN_RUN_REPORT_HISTORY_H
#define RUNTIME_CKRUN_RUN_REPORT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/err.h"

/* The values that have curves. */
enum series {
	S_LOSS, S_VALID_LOSS, S_ACCURACY, S_PERPLEXITY, S_NORM, S_LR,
	S_SPEED,                        /* samples or tokens per second */
	S_SCALE, NSERIES
};

struct moment {
	double step;
	float v[NSERIES];               /* NaN if not finite */
	uint16_t has;                   /* bit 1 << series: the row has it */
};

struct history {
	const char *path;
	struct moment *row;             /* steps increase */
	size_t n, room;
	double seconds, units, peak_bytes;      /* units: samples or tokens */
	bool tokens;                    /* units are tokens */
	uint64_t skipped;               /* steps without an update */
	uint64_t again;                 /* rows that a resumed run replaced */
	uint64_t broken, broken_line;   /* invalid lines; the first one */
	char why[120];                  /* its fault */
};

/* Read a log; a repeated step replaces the earlier row.  Invalid lines, such as
 * the last one of a run that was killed, are counted and skipped; a log without
 * rows is a failure.  Call history_free in any case. */
ckr_status history_read(struct history *, const char *path, struct err *);
void history_free(struct history *);

static inline bool
history_has(const struct history *h, size_t i, enum series s)
{
	return h->row[i].has >> s & 1;
}

#endif
