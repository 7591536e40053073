/* Printing the textual form: what its files share.
 *
 * print_val.c prints names, numbers and values, text.c nodes and graphs.
 */
#ifndef IR_TEXT_PRINT_H
#define IR_TEXT_PRINT_H

#include "ir/ir.h"

void text_quoted(FILE *, const char *);
/* In quotes unless it is plain. */
void text_name(FILE *, char sigil, const char *name);
/* A word that must not read as a number. */
void text_word(FILE *, const char *);
/* %NAME, or _ for none. */
void text_ref(FILE *, const Graph *, ValId);
/* " WORD %NAME" if there is such a value. */
void text_mark(FILE *, const Graph *, const char *word, ValId);
/* " WORD PLACEMENT", unless it is Replicate. */
void text_placement(FILE *, const char *word, const Placement *);
/* [1,2,3] */
void text_ints(FILE *, int n, const int64_t *);
/* The fewest of 6, 9, 17 digits that read back as the same number of the
 * type. */
void text_float(FILE *, double, DType);
void text_type(FILE *, const Val *);
void text_marks(FILE *, const Graph *, const Val *);
/* " = ...", if the value has contents. */
void text_contents(FILE *, const Graph *, const Val *);

#endif
