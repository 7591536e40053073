/* What text.c (printing) and parse.c (reading) share. */
#ifndef IR_TEXT_H
#define IR_TEXT_H

#include "ir/ir.h"

/* Characters of words and of names that need no quotes. */
#define TEXT_WORD \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-"

enum {
	TEXT_LISTED = 64,       /* elements that are listed one by one */
	TEXT_HEX = 4096,        /* bytes of contents that are written out */
};

extern const char *const text_prop[];           /* names of P_*, in order */
extern const char *const text_phase[PH_COUNT];
extern const char *const text_kind[V_KIND_COUNT];

#endif
