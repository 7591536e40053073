/* Reading the textual form: what its files share.
 *
 * parse_token.c cuts the text into tokens and says what else was expected,
 * parse_val.c reads values and their contents, parse_node.c nodes and the
 * bodies of loops, parse.c graphs.
 */
#ifndef IR_TEXT_PARSER_H
#define IR_TEXT_PARSER_H

#include "ir/ir.h"
#include "ir/text/text.h"

enum token { T_END, T_LINE, T_WORD, T_STRING, T_VAL, T_AT, T_SIGN, T_BAD };

/* A mention of a value, looked up when the whole text is read. */
struct mention {
	ValId val;                      /* whose field, or */
	NodeId node;                    /* whose `of` or `wait` */
	enum { M_OF, M_LOW_PRECISION, M_PARAM, M_ADJOINT, M_IN, M_AGAIN, M_WAIT,
	       M_LOSS } field;
	const char *name;
	int line;
};

struct parser {
	Graph *g;
	Diag *d;
	Arena *tmp;
	const char *path, *at, *end;
	int line, faults;
	enum token tok;
	char *text;                     /* of word, string, value, @name */
	char sign;
	ValId fresh;                    /* values from here on are not written
	                                 * yet */
	bool in_body;
	struct origin_table origins;
	struct mention *mention;
	size_t nmention, mention_cap;
};

/* ---- parse_token.c ---- */

/* Messages from here on are about this line. */
void tok_locate(struct parser *, int line);
bool tok_fault_at(struct parser *, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define tok_fault(p, ...) tok_fault_at(p, (p)->line, __VA_ARGS__)
/* Report that something else was expected here. */
bool tok_expected(struct parser *, const char *what);
/* On to the next token. */
void tok_next(struct parser *);
void tok_skip_lines(struct parser *);
bool tok_is(const struct parser *, char sign);
bool tok_is_word(const struct parser *, const char *word);
/* Go past it if it is there. */
bool tok_accept(struct parser *, char sign);
bool tok_word(struct parser *, const char *word);
/* The same, and false after a diagnostic if it is not. */
bool tok_expect(struct parser *, char sign);
bool tok_text(struct parser *, enum token, const char *what, char **text);
bool tok_int(struct parser *, int64_t low, const char *what, int64_t *);
bool tok_list(struct parser *, int64_t low, IntList *);
/* Whether all of s is a decimal number. */
bool tok_number(const char *s, int64_t *);
int tok_hex_digit(char);

/* ---- parse_val.c ---- */

DType parse_find_type(const char *text);
bool parse_dtype(struct parser *, DType *);
/* The value named next, to be put into a field in the end. */
bool parse_mention(struct parser *, ValId, NodeId, int field);
/* NAME [: TYPE] MARKS; 0 after a diagnostic. */
ValId parse_decl(struct parser *, ValKind);
/* The contents that follow the = of a value. */
bool parse_contents(struct parser *, Val *);

/* ---- parse_node.c ---- */

/* A node, from its outputs on; false after a diagnostic. */
bool parse_node(struct parser *);

#endif
