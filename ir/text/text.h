/* Room text: a graph as text and back.
 *
 * in      a graph, or text that a person or a pass wrote
 * out     text that is complete and the same every time, or a graph
 * unaware of what the graph is for
 */
#ifndef IR_TEXT_TEXT_H
#define IR_TEXT_TEXT_H

#include "ir/ir.h"

/* The complete textual form; parse(print(g)) prints the same. */
void text_print(const Graph *, FILE *);
Graph *text_parse(const char *path, const char *text, size_t n, Diag *);

/* ---- what printing and reading share ---- */

/* Characters of words and of names that need no quotes. */
#define TEXT_WORD \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-"

enum {
	TEXT_LISTED = 64,       /* elements that are listed one by one */
	TEXT_HEX = 4096,        /* bytes of contents that are written out */
};

/* Origins that have been looked up; zero but for arena and graph. */
struct origin_table {
	Arena *arena;
	const Graph *g;
	uint32_t *slot;                 /* indices of g's, 0: free */
	uint32_t size, used;            /* 0 or a power of 2; at most half */
};

/* The slot of the origin with this name and op.  If it is free, the caller
 * puts an index there before the next call. */
uint32_t *origin_slot(struct origin_table *, const struct origin *);

extern const char *const text_prop[];           /* names of P_*, in order */
extern const char *const text_phase[PH_COUNT];
extern const char *const text_kind[V_KIND_COUNT];

#endif
