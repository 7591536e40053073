/* Room text: a graph as text and back.
 *
 * in      a graph, or text that a person or a pass wrote
 * out     text that is complete and the same every time, or a graph
 * must not know what the graph is for
 */
#ifndef IR_TEXT_TEXT_H
#define IR_TEXT_TEXT_H

#include "ir/base/table.h"
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
	struct table at;                /* indices of g's */
};

/* The index that was added with this name and op; 0: none. */
uint32_t origin_find(const struct origin_table *, const struct origin *);
/* Add that of an origin of g, and return it. */
uint32_t origin_add(struct origin_table *, uint32_t id);

extern const char *const text_prop[];           /* names of P_*, in order */
extern const char *const text_phase[PH_COUNT];
extern const char *const text_kind[V_KIND_COUNT];

#endif
