/* Options of a program: one table gives the parser and --help.  The table lies
 * beside its program. */
#ifndef RUNTIME_SUPPORT_OPTIONS_H
#define RUNTIME_SUPPORT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct arg_parser;

/* Stores the value of an option in its field; arg is NULL for options that
 * take none.  False after a message. */
typedef bool SetOption(struct arg_parser *, const char *arg, void *field);

struct option_spec {
	const char *name, *arg;         /* arg NULL: no argument; "a|b": words
	                                 * for setters such as set_word */
	int group;                      /* of --help */
	SetOption *set;
	size_t field;                   /* offset in the program's object */
	unsigned verbs;                 /* verbs with this option: 1 << verb */
	const char *help;
	double least;                   /* of numbers */
	uint64_t most;                  /* of whole numbers; 0: any */
	const char *words;              /* NULL: those of arg */
	const int *value;               /* of words; NULL: 0, 1, ... */
	const char *expected;           /* in words; NULL: by the setter */
};

/* TWICE: another value was given before; RANGE: a number out of its range. */
enum option_fault { OPTION_BAD, OPTION_RANGE, OPTION_TWICE };

struct arg_parser {
	const struct option_spec *row;  /* current option */
	void *object;                   /* has the fields */
	FILE *err;
	void *arena;                    /* for setters of the program */
	bool empty;                     /* set_string takes "" */
	/* Write the program's message about an argument; returns false. */
	bool (*reject)(struct arg_parser *, enum option_fault, const char *arg,
	               const char *expected);
};

/* The option that an argument --NAME or --NAME=VALUE names; NULL: none. */
const struct option_spec *option_find(const struct option_spec *, size_t nrow,
                                      const char *arg);
/* Its value, after = or in the next argument, to which *i moves; NULL: none. */
const char *option_value(int argc, char **argv, int *i);
/* Write the rows of one group that any of the verbs has, each with its help
 * from this column on, below a heading. */
void option_help(const struct option_spec *, size_t nrow, int group,
                 unsigned verbs, const char *heading, int column, FILE *);

/* ---- setters ---- */

/* bool: true; char *: the last counts; char *: must not change. */
SetOption set_true, set_string, set_once;
/* One of the row's words: bool, true for the first, or for the second; int or
 * an enum by the row's values. */
SetOption set_first, set_second, set_word;
/* 64 bits: a number of at least 0; double: a finite number. */
SetOption set_whole, set_real;

#endif
