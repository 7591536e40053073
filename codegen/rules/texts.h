/* Sources that generated code includes, embedded at build time: headers that
 * include one another by name, and units NAME.c that define what NAME.h
 * declares. */
#ifndef CODEGEN_RULES_TEXTS_H
#define CODEGEN_RULES_TEXTS_H

struct text {
	const char *name, *text;
};

extern const struct text codegen_texts[];       /* the last one has no name */

#endif
