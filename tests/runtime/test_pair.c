/* Which input gets which array: a table of what there is and what must come of
 * it.  Nothing is read from files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/data/pair.h"

enum { MOST = 8, WHOLE = 1, RAW = 2, SHIFTED = 4, MICRO = 8, GRAY = 16,
       COLOR = 32 };                    /* --normalize, by channel */

/* Inputs and arrays as "NAME TYPE[EXTENTS]; ...", a name "-" being none; words
 * of feed are one --feed each.  `gets` has a word for every input, or begins
 * with '!' and lists, between bars, what the refusal must say. */
struct row {
	const char *inputs, *arrays, *feed, *gets;
	int flags;
};

#define GPT "ids i64[4,8]; labels i64[4,8]; attention_mask i64[4,8]; " \
	"position_ids i64[8]; token_type_ids i64[4,8]"
#define MLP "x f32[32,20]; labels i64[32]"
#define NCHW "x f32[4,3,8,6]; y i64[4]"

static const struct row rows[] = {
	/* rows: names, then what is left over */
	{ MLP, "x f32[2000,20]; y i64[2000]", "", "rows:x rows:y", 0 },
	{ MLP, "x f32[2000,20]; labels i32[2000]", "", "rows:x rows:labels",
	  0 },
	{ "x f32[32,20]; y i64[32]", "inputs f32[2000,20]; labels u8[2000]", "",
	  "rows:inputs rows:labels", 0 },
	{ "x f32[32,20]; y i64[32]", "inputs f32[2000,20]; labels i64[2000]",
	  "x=inputs", "rows:inputs rows:labels", 0 },
	{ "x f32[32,20]; y i64[32]", "inputs f32[2000,20]; labels i64[2000]",
	  "y=labels", "rows:inputs rows:labels", 0 },
	{ "y i64[32]; x f32[32,20]", "b i64[2000]; a f64[2000,20]", "",
	  "rows:b rows:a", 0 },
	{ "x f32[32,20]", "- f32[2000,20]", "", "rows:-", 0 },
	{ MLP, "- f32[2000,20]", "labels=zeros", "rows:- zeros", 0 },
	{ MLP, "- f32[2000,20]", "", "!input 'labels' i64[32]|no data are assigned",
	  0 },
	{ "x f32[32,20]; y f32[32,1]", "a f32[9,20]; b f32[9,1]", "",
	  "rows:a rows:b", 0 },
	{ "x f32[32,20]; m bool[32,20]", "a f32[9,20]; b bool[9,20]", "",
	  "rows:a rows:b", 0 },
	{ "input_ids i64[8,128]; labels i64[8]",
	  "ids i64[500,128]; label i64[500]", "", "rows:ids rows:label", 0 },
	{ "cat i64[32]; y i64[32]", "cat i64[500]; z i64[500]", "",
	  "rows:cat rows:z", 0 },
	/* of two that fit, the one with as many samples */
	{ MLP, "x f32[500,20]; y i64[500]; z i64[2000]", "", "rows:x rows:y",
	  0 },
	{ MLP, "x f32[2000,20]; y i64[2000]; x_test f32[500,20]; "
	  "y_test i64[500]", "", "rows:x rows:y", 0 },
	{ MLP, "x_train f32[2000,20]; y_train i64[2000]; x_test f32[500,20]; "
	  "y_test i64[500]", "", "!input 'x'|more than one array|"
	  "--feed x=x_train|--feed x=x_test", 0 },
	{ MLP, "x_train f32[2000,20]; y_train i64[2000]; x_test f32[500,20]; "
	  "y_test i64[500]", "x=x_train", "rows:x_train rows:y_train", 0 },
	{ MLP, "a f32[2000,20]; b f32[500,20]; c i64[500]", "x=b",
	  "rows:b rows:c", 0 },
	{ MLP, "a f32[2000,20]; b i64[500]", "", "!input 'labels'|another "
	  "number of samples|no array of the file fits", 0 },
	/* no advice that has been taken, or would not help */
	{ MLP, "a f32[2000,20]; b i64[500]", "labels=b", "!another number of "
	  "samples|no array of the file", 0 },
	{ MLP, "x f32[2000,20]; labels i64[500]; y i64[500]", "",
	  "!input 'labels'|has 500 samples, but the array of 'x' has 2000|"
	  "no array of the file", 0 },
	{ MLP, "x f32[2000,20]; labels i64[500]; y i64[2000]", "",
	  "!input 'labels'|but the array of 'x'|sources:\n    --feed labels=y", 0 },
	/* ambiguous */
	{ MLP, "x f32[9,20]; a i64[9]; b i64[9]", "", "!input 'labels'|more "
	  "than one|--feed labels=a\n    --feed labels=b", 0 },
	{ "u i64[32]; v i64[32]; r f32[32]", "a i64[9]; b i64[9]; c f32[9]", "",
	  "!input 'u' i64[32]|--feed u=a\n    --feed u=b\n", 0 },
	{ "u i64[32]; v i64[32]; r f32[32]", "a i64[9]; b i64[9]; c f32[9]",
	  "u=b", "rows:b rows:a rows:c", 0 },
	{ "x f32[4,6]; t f32[4,6]", "- f32[9,6]", "", "!input 'x'|--feed x=rows",
	  0 },
	{ "x f32[4,6]; t f32[4,6]", "- f32[9,6]", "x=rows t=rows",
	  "rows:- rows:-", 0 },
	{ "x f32[4,6]; t f32[4,6]", "x f32[9,6]", "", "!input 't'|"
	  "--feed t=x", 0 },
	{ "input_ids i64[8,128]; attention_mask i64[8,128]; labels i64[8]",
	  "ids i64[500,128]; label i64[500]", "", "!input 'attention_mask'|"
	  "--feed attention_mask=ones", 0 },
	{ "input_ids i64[8,128]; attention_mask i64[8,128]; labels i64[8]",
	  "input_ids i64[500,128]; label i64[500]", "",
	  "!input 'attention_mask'|--feed attention_mask=ones", 0 },
	{ "input_ids i64[8,128]; attention_mask i64[8,128]; labels i64[8]",
	  "ids i64[500,128]; label i64[500]", "attention_mask=ones",
	  "rows:ids ones rows:label", 0 },
	/* names that speak against it */
	{ "input_ids i64[8,9]; labels i64[8,9]", "input_ids i64[50,9]; "
	  "attention_mask i64[50,9]", "", "!input 'labels'|"
	  "--feed labels=attention_mask", 0 },
	{ "input_ids i64[8,9]; attention_mask i64[8,9]", "input_ids i64[50,9]; "
	  "segments i64[50,9]", "", "!input 'attention_mask'|"
	  "--feed attention_mask=ones", 0 },
	{ "input_ids i64[8,9]; attention_mask i64[8,9]", "ids i64[50,9]; "
	  "masks i64[50,9]", "", "rows:ids rows:masks", 0 },
	/* names whose arrays do not fit */
	{ MLP, "x f32[2000,21]; y i64[2000]", "", "!input 'x'|assigned array is "
	  "f32[2000,21]", 0 },
	{ MLP, "x f32[2000,21]; z f32[2000,20]; y i64[2000]", "",
	  "!input 'x'|f32[2000,21]|--feed x=z", 0 },
	{ MLP, "x f32[2000,20]; labels i64[2000,5]; y i64[2000]", "",
	  "!input 'labels'|i64[2000,5]|--feed labels=y", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "tokens i64[999]; labels i64[999]",
	  "", "!input 'labels'|input's name is i64[999]|sources:\n"
	  "    --feed labels=next:tokens\n", 0 },
	{ "a f32[4,2]; b f32[5,2]", "a f32[9,2]; b f32[9,2]", "",
	  "!batch size differs", 0 },
	{ MLP, "x f32[0,20]; y i64[0]", "", "!empty|no array of the file", 0 },
	/* kinds */
	{ "x f32[8,3,4]; labels i64[8]", "images u8[99,3,4]; y i64[99]", "",
	  "!input 'x'|--feed x=float:images", 0 },
	{ "x f32[8,3,4]; labels i64[8]", "x u8[99,3,4]; y i64[99]", "",
	  "!input 'x'|u8[99,3,4]|0 to 255|--feed x=float:x", 0 },
	{ "x f32[8,3,4]; labels i64[8]", "images u8[99,3,4]; y i64[99]",
	  "x=images", "!0 to 255|--feed x=float:images", 0 },
	{ "x f32[8,3,4]; labels i64[8]", "images u8[99,3,4]; y i64[99]",
	  "x=float:images", "rows:images rows:y", 0 },
	{ "x f32[8,3]", "- i32[99,3]", "", "!--feed x=float\n", 0 },
	{ "x f32[8,3]", "- i32[99,3]", "x=float", "rows:-", 0 },
	{ MLP, "x f32[99,20]; y f64[99]", "", "!input 'labels'|"
	  "--feed labels=int:y", 0 },
	{ MLP, "x f32[99,20]; y f64[99]", "labels=y", "!floats are not integers|"
	  "--feed labels=int:y", 0 },
	{ MLP, "x f32[99,20]; y f64[99]", "labels=int:y", "rows:x rows:y", 0 },
	{ MLP, "x f32[99,20]; y i64[99]", "labels=float:y", "!kind", 0 },
	{ "x f32[8,3]; m i64[8,3]", "x f32[9,3]; m bool[9,3]", "",
	  "rows:x rows:m", 0 },
	{ "x f32[8,3]; t f32[8]", "x f32[9,3]; t bool[9]", "", "rows:x rows:t",
	  0 },
	{ "x f32[8,3]", "x none[9,3]", "", "!no array of the file", 0 },
	/* windows */
	{ GPT, "- u16[999]", "", "tokens:- next:- ones positions zeros", RAW },
	{ GPT, "- i64[999]", "", "tokens:- next:- ones positions zeros", 0 },
	{ GPT, "any u16[999]", "", "tokens:any next:any ones positions zeros",
	  0 },
	{ GPT, "tokens i64[999]; other i64[7]", "",
	  "tokens:tokens next:tokens ones positions zeros", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "ids i64[999]", "",
	  "tokens:ids next:ids", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "- i64[999]", "",
	  "tokens:- tokens:-", SHIFTED },
	{ "ids i64[4,8]; labels i64[4,8]", "- i64[8]", "", "!8 tokens are too "
	  "few for windows of 9", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "- i64[0]", "", "!0 tokens", RAW },
	{ "ids i64[8]; labels i64[8]", "- i64[999]", "", "tokens:- next:-", 0 },
	{ "ids i64[4,8]; other i64[4,8]", "- i64[999]", "", "!more than one "
	  "input could take|--feed other=tokens", 0 },
	{ "ids i64[4,8]; other i64[4,8]", "- i64[999]", "ids=tokens",
	  "!input 'other'|more than one input could take", 0 },
	{ "ids i64[4,8]; other i64[4,8]", "- i64[999]", "other=next",
	  "tokens:- next:-", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "train i64[999]; val i64[99]", "",
	  "!--feed ids=tokens:train\n    --feed ids=tokens:val", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "train i64[999]; val i64[99]",
	  "ids=tokens:train", "tokens:train next:train", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "train i64[999]; val i64[99]",
	  "ids=tokens:train labels=next:val", "!windows come from two arrays", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "train i64[999]; val i64[99]",
	  "ids=tokens", "!no single token stream|--feed ids=tokens:train", 0 },
	{ "ids i64[4,8]; labels i64[4]", "- i64[999]", "", "!windows have "
	  "another shape", RAW },
	{ "ids i64[4,8]; labels i64[2,8]", "- i64[999]", "", "!windows have "
	  "another shape", RAW },
	{ "labels i64[4,8]", "- i64[999]", "", "!no input takes the tokens|"
	  "--feed labels=tokens\n", 0 },
	{ "x f32[4,8]", "- u16[999]", "", "!input 'x'", RAW },
	{ "ids f32[4,8]", "- u16[999]", "ids=tokens", "!tokens need an integer input",
	  RAW },
	{ "ids i64[4,8]; labels i64[4,8]", "any i64[999]; x f32[7]", "",
	  "!input 'ids'|no data are assigned|--feed ids=tokens:any", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "any i64[999]; x f32[7]",
	  "ids=tokens", "tokens:any next:any", 0 },
	/* samples that do not fit do not make tokens of their labels */
	{ "ids i64[4,8]; labels i64[4,8]", "a i64[99,7]; y i64[99]", "",
	  "!input 'ids'|no array of the file", 0 },
	{ GPT, "tokens i64[999]; mask i64[99,8]", "", "!input 'ids'|rows of "
	  "samples|--feed ids=tokens:tokens", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "tokens i64[999]; a i64[99,8]", "",
	  "!input 'ids'|the array that fits also fits another input|"
	  "--feed ids=a", 0 },
	/* windows beside rows */
	{ MLP, "x f32[2000,20]; y i64[2000]", "labels=next", "rows:x next:y",
	  0 },
	{ "x f32[4,9]; ids i64[4,8]; labels i64[4,8]",
	  "x f32[99,9]; tokens i64[999]", "", "!input 'ids'|rows of samples|"
	  "--feed ids=tokens:tokens", 0 },
	{ "x f32[4,9]; ids i64[4,8]; labels i64[4,8]",
	  "x f32[99,9]; tokens i64[999]", "ids=tokens", "!input 'labels'|"
	  "rows of samples|--feed labels=next:tokens", 0 },
	{ "x f32[4,9]; ids i64[4,8]; attention_mask i64[4,8]",
	  "x f32[99,9]; tokens i64[999]", "ids=tokens",
	  "rows:x tokens:tokens ones", 0 },
	{ "x f32[4,9]; ids i64[4,8]; labels i64[4,8]",
	  "x f32[99,9]; tokens i64[999]", "ids=tokens labels=next",
	  "rows:x tokens:tokens next:tokens", 0 },
	{ "x f32[32,20]; y i64[32]", "x f32[2000,20]; tokens i64[999]", "",
	  "!input 'y'|another number|no array of the file fits", 0 },
	/* what --feed can be */
	{ "positions i64[8]", "tokens i64[9]", "positions=tokens:tokens",
	  "tokens:tokens", 0 },
	{ "p i64[8]", "tokens i64[9]", "p=tokens", "!ambiguous|"
	  "--feed p=rows:tokens", 0 },
	{ "p i64[8]", "tokens i64[9]", "p=rows:tokens", "rows:tokens", 0 },
	{ "p i64[4,8]", "tokens i64[9,8]", "p=tokens", "rows:tokens", 0 },
	{ "p i64[4,8]", "positions i64[9,8]", "p=positions", "rows:positions",
	  0 },
	{ "p i64[4,8]", "positions i64[9,7]", "p=positions", "positions", 0 },
	{ "a=b f32[4,8]; a f32[4,8]", "c f32[9,8]; d f32[9,8]", "a=b=c",
	  "rows:c rows:d", 0 },
	{ "x[0] f32[4,8]; z f32[4,8]", "a$ f32[9,8]; b f32[9,8]", "",
	  "!--feed 'x[0]=a$'\n", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x=x x=y", "!twice", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "z=x",
	  "!--feed 'z=x': the model has no input 'z'; expected one of 'x', "
	  "'labels'\n", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x=q", "!neither a source nor an "
	  "array", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x=rows:q", "!not in the file", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x=rows", "!not name an array", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "labels=next:x", "!list of integers",
	  0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x", "!expected INPUT=SOURCE", 0 },
	{ MLP, "x f32[9,20]; y i64[9]", "x=", "!expected INPUT=SOURCE", 0 },
	{ "", "", "x=y", "!has no input 'x'\n", 0 },
	{ MLP, "", "", "!--data FILE", 0 },
	/* whole batches go by name */
	{ MLP, "x f32[32,20]; labels i64[32]", "", "all:x all:labels", WHOLE },
	{ MLP, "x f32[64,20]; labels i64[32]", "", "all:x all:labels",
	  WHOLE | MICRO },
	{ MLP, "x f32[64,20]; labels i64[32]", "", "!assigned array is f32[64,20]",
	  WHOLE },
	{ MLP, "x f32[32,20]; y i64[32]", "", "!input 'labels'|"
	  "--feed labels=y", WHOLE },
	{ MLP, "x f32[32,20]; y i64[32]", "labels=y", "all:x all:y", WHOLE },
	{ MLP, "x u8[32,20]; labels i64[32]", "", "!--feed x=float:x", WHOLE },
	{ MLP, "x f32[32,20]; y i64[32]", "labels=tokens", "!not a token stream", WHOLE },
	{ "x f32[32,20]", "- f32[32,20]", "", "all:-", WHOLE },
	{ "s f32[]", "s f32[]", "", "all:s", WHOLE },
	/* one number is the same in every batch */
	{ "s f32[]", "s f32[]", "", "all:s", 0 },
	{ "x f32[2,4]; s f32[]", "x f32[9,4]; r f32[]", "", "rows:x all:r", 0 },
	{ "x f32[2,4]; s f32[]", "x f32[9,4]; s f32[9]", "", "!input 's' f32[]|"
	  "expected f32[];", 0 },
	{ "x f32[2,4]; s f32[]", "x f32[9,4]; s i64[]", "", "!sources:\n"
	  "    --feed s=float:s\n", 0 },
	/* lines that would be refused, or mean nothing, are not offered */
	{ "x f32[4,3]; y f32[4,3]", "x f32[10,3]; y f32[8,3]", "", "!input 'y'|"
	  "samples, but the array of|sources: no array of the file fits; "
	  "expected f32[10,3], one row per sample", 0 },
	{ "x f32[2,4]; mask f32[4,4]", "x f32[10,4]; mask f32[4,4]", "",
	  "!input 'mask'|sources:\n    --feed mask=ones\n", 0 },
	{ "x i64[4,3]; labels i64[4,3]; z i64[4,3]", "x i64[9,3]; "
	  "labels f32[9,3]; z i64[9,3]", "", "!input 'labels'|sources:\n"
	  "    --feed labels=int:labels\n", 0 },
	{ "ids i64[4,8]; labels i64[4,8]", "tokens i64[99]; ids i64[9,8]", "",
	  "!input 'labels'|sources: no array of the file fits; expected "
	  "i64[9,8]", 0 },
	{ "ids i64[4,8]; labels i64[4]", "tokens i64[999]", "labels=next",
	  "!windows have another shape", 0 },
	/* pixels: of any layout, if they are to be scaled */
	{ NCHW, "images u8[9,8,6,3]; y u8[9]", "", "rows:images rows:y",
	  COLOR },
	{ NCHW, "images u8[9,3,8,6]; y u8[9]", "", "rows:images rows:y",
	  COLOR },
	{ NCHW, "images u8[9,8,6,3]; y u8[9]", "", "!input 'x'|no data are assigned|"
	  "sources:\n    --feed x=float:images\n", 0 },
	{ NCHW, "images u8[9,8,6,3]; y u8[9]", "x=images", "!pixels from 0 to "
	  "255; --normalize MEAN,STD", 0 },
	{ NCHW, "images u8[9,8,6,3]; y u8[9]", "x=float:images",
	  "rows:images rows:y", 0 },
	{ NCHW, "x f32[9,8,6,3]; y u8[9]", "", "!which does not fit",
	  COLOR },
	{ NCHW, "x i32[9,3,8,6]; y u8[9]", "", "rows:x rows:y", COLOR },
	{ NCHW, "x i32[9,3,8,6]; y u8[9]", "", "!of another kind", 0 },
	{ NCHW, "images i32[9,8,6,3]; y u8[9]", "", "!no data are assigned|sources:\n"
	  "    --feed x=images\n", COLOR },
	{ NCHW, "x u8[9,6,8,3]; y u8[9]", "", "!which does not fit",
	  COLOR },
	{ NCHW, "x u8[9,3,8,6]; y u8[9]", "", "rows:x rows:y", GRAY },
	{ "x f32[4,8,6,3]; y i64[4]", "x u8[9,3,8,6]; y u8[9]", "",
	  "rows:x rows:y", COLOR },
	{ "x f32[4,32,3,32]; y i64[4]", "x u8[9,3,32,32]; y u8[9]", "",
	  "!which does not fit", GRAY },
	{ "x f32[4,3,6,3]; y i64[4]", "x u8[9,3,6,3]; y u8[9]", "", "!no single "
	  "axis of the input has that many", COLOR },
	{ "x f32[4,48]; y i64[4]", "x u8[9,8,6]; y u8[9]", "", "rows:x rows:y",
	  GRAY },
	{ "x f32[4,48]; y i64[4]", "x u8[9,8,6]; y u8[9]", "", "!no single axis",
	  COLOR },
	{ "x f32[4,144]; y i64[4]", "x u8[9,8,6,3]; y u8[9]", "",
	  "!which does not fit", GRAY },
	{ "x f32[4,1,8,6]; y i64[4]", "x u8[9,8,6]; y u8[9]", "",
	  "rows:x rows:y", GRAY },
	{ "x f32[4,8,6,1]; y i64[4]", "x u8[9,8,6]; y u8[9]", "",
	  "rows:x rows:y", GRAY },
	{ "x f32[4,8]; y f32[4]", "x u8[9,8]; y u8[9]", "", "!'y'|of another "
	  "kind|--feed y=float:y", GRAY },
};

/* The next "NAME TYPE[EXTENTS]" of *s; false: there is none. */
static bool
parse(const char **s, char *name, struct array *a)
{
	char type[8], extents[64] = "";
	int n = 0;

	if (sscanf(*s, " %31s %7[^[][%n", name, type, &n) != 2)
		return false;
	*s += n;
	sscanf(*s, "%63[0-9,]", extents);
	*s += strlen(extents) + 1;
	*s += **s == ';';
	*a = (struct array){ .dtype = dtype_from_text(type), .nelem = 1, .name = name };
	for (char *x = strtok(extents, ","); x; x = strtok(NULL, ",")) {
		a->dim[a->rank++] = atoi(x);
		a->nelem *= (uint64_t)atoi(x);
	}
	if (!strcmp(name, "-"))
		*name = '\0';
	return true;
}

struct all {
	struct fed_input item[MOST];
	struct array a[MOST];
	char name[2 * MOST][32];
	char feed[MOST][64];
	const char *feeds[MOST];
	size_t nfeed;
	struct err err;
	struct pairing p;
};

static void
set_up(struct all *x, const struct row *r)
{
	const char *s = r->inputs;
	struct array a;
	int n = 0;

	x->p = (struct pairing){ .item = x->item, .array = x->a, .path = "file",
		.raw = r->flags & RAW, .whole = r->flags & WHOLE,
		.nmicro = r->flags & MICRO ? 2 : 1, .err = &x->err,
		.normal.n = r->flags & GRAY ? 1 : r->flags & COLOR ? 3 : 0 };
	for (size_t i = 0; parse(&s, x->name[i], &a); i++) {
		struct input_spec in = { .name = x->name[i], .dtype = a.dtype,
			.rank = a.rank, .nelem = a.nelem,
			.shifted = r->flags & SHIFTED
			           && !strcmp(x->name[i], "labels") };

		memcpy(in.dim, a.dim, sizeof(a.dim));
		x->item[i] = (struct fed_input){ .in = in };
		x->p.n++;
	}
	for (s = r->arrays; parse(&s, x->name[MOST + x->p.narray],
	                          &x->a[x->p.narray]);)
		x->p.narray++;
	x->nfeed = 0;
	for (s = r->feed; sscanf(s, " %63s%n", x->feed[x->nfeed], &n) == 1;
	     s += n) {
		x->feeds[x->nfeed] = x->feed[x->nfeed];
		x->nfeed++;
	}
}

static void
describe(const struct all *x, char *out, size_t size)
{
	static const char *const word[] = {
		[FROM_TOKENS] = "tokens:", [FROM_NEXT] = "next:",
		[FROM_SAMPLES] = "rows:", [FROM_WHOLE] = "all:",
		[FROM_ONES] = "ones", [FROM_ZEROS] = "zeros",
		[FROM_POSITIONS] = "positions",
	};

	*out = '\0';
	for (size_t i = 0; i < x->p.n; i++) {
		const struct array *a = x->item[i].array;
		size_t n = strlen(out);

		snprintf(out + n, size - n, "%s%s%s", i ? " " : "",
		         word[x->item[i].source], !a ? "" : *a->name ? a->name
		         : "-");
	}
}

/* Every part between bars is in the message. */
static bool
says(const char *message, const char *parts)
{
	char part[200];

	while (*parts) {
		size_t n = strcspn(parts, "|");

		snprintf(part, sizeof(part), "%.*s", (int)n, parts);
		if (!strstr(message, part))
			return false;
		parts += n + (parts[n] == '|');
	}
	return true;
}

static void
test_table(void **state)
{
	int failed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct row *r = &rows[i];
		struct all x;
		char got[2100];
		bool refused;

		set_up(&x, r);
		refused = pair_inputs(&x.p, x.feeds, x.nfeed) != CKR_OK;
		if (refused)
			snprintf(got, sizeof(got), "%s\n", x.err.text);
		else
			describe(&x, got, sizeof(got));
		if (refused ? *r->gets == '!' && says(got, r->gets + 1)
		    : !strcmp(got, r->gets))
			continue;
		failed++;
		print_error("%s <- %s --feed '%s'\n  expected %s\n  found %s\n",
		            r->inputs, r->arrays, r->feed, r->gets, got);
	}
	assert_int_equal(failed, 0);
}

/* Every pair with its shapes, every guess, and what nobody reads. */
static void
test_print(void **state)
{
	static const struct row r[] = {
		{ MLP, "x f32[9,20]; y i64[9]; z i64[7]", "", "", 0 },
		{ GPT, "- u16[999]", "token_type_ids=ones", "", RAW },
		{ "m bool[2,4]; n i64[2,4]; f f32[2]; labels i64[2,4]; s f32[]",
		  "m u8[9,4]; n bool[9,4]; f i64[9]; s f32[]; t i64[99]",
		  "f=float:f labels=next:t", "", 0 },
		{ "a f32[4,3,8,6]; b f32[4,8,6,3]; c f32[4,48]; d f32[4,48]",
		  "a u8[9,8,6,3]; b u8[9,8,6,3]; c u8[9,8,6]; d u8[9,48]",
		  "a=float:a d=float:d", "", GRAY },
	};
	static const char *const want[] = {
		"  x f32[32,20] = rows of 'x' f32[9,20]\n"
		"  labels i64[32] = rows of 'y' i64[9]\n"
		"  not used: 'z' i64[7]\n",
		"  ids i64[4,8] = token windows, u16[999]\n"
		"  labels i64[4,8] = the same windows, shifted by one token\n"
		"  attention_mask i64[4,8] = ones (a guess)\n"
		"  position_ids i64[8] = positions 0 1 2 ... (a guess)\n"
		"  token_type_ids i64[4,8] = ones\n"
		"  to change a guess, try: --feed INPUT=SOURCE\n",
		"  m bool[2,4] = rows of 'm' u8[9,4], true where not 0\n"
		"  n i64[2,4] = rows of 'n' bool[9,4], 1 where true\n"
		"  f f32[2] = rows of 'f' i64[9], converted\n"
		"  labels i64[2,4] = token windows, shifted by one token, 't' i64[99]\n"
		"  s f32[] = all of 's' f32[]\n",
		"  a f32[4,3,8,6] = rows of 'a' u8[9,8,6,3], HWC to CHW, "
		"converted\n"
		"  b f32[4,8,6,3] = rows of 'b' u8[9,8,6,3], (x / 255 - mean) "
		"/ std\n"
		"  c f32[4,48] = rows of 'c' u8[9,8,6], (x / 255 - mean) / "
		"std\n"
		"  d f32[4,48] = rows of 'd' u8[9,48], converted\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(r) / sizeof(*r); i++) {
		struct all x;
		char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		set_up(&x, &r[i]);
		assert_int_equal(pair_inputs(&x.p, x.feeds, x.nfeed), CKR_OK);
		pair_print(&x.p, f);
		fclose(f);
		assert_string_equal(text, want[i]);
		free(text);
	}
}

/* However many inputs there are, the lines to choose from are whole. */
static void
test_long(void **state)
{
	enum { N = 200 };
	static char name[N][220];
	static struct fed_input item[N];
	struct array a[2] = {
		{ .name = "first", .dtype = CKR_F32, .rank = 1, .dim = { 9 } },
		{ .name = "second", .dtype = CKR_F32, .rank = 1, .dim = { 9 } },
	};
	struct err err;
	struct pairing p = { .item = item, .n = N, .array = a, .narray = 2,
		.path = "file", .nmicro = 1, .err = &err };

	(void)state;
	for (int i = 0; i < N; i++) {
		memset(name[i], 'n', 150);
		snprintf(name[i] + 150, 20, "%d", i);
		item[i].in = (struct input_spec){ .name = name[i], .rank = 1,
			.dtype = CKR_F32, .dim = { 4 }, .nelem = 4 };
	}
	assert_int_not_equal(pair_inputs(&p, NULL, 0), CKR_OK);
	assert_non_null(strstr(err.text, "nnn0=first\n"));
	assert_non_null(strstr(err.text, "nnn0=second"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table), cmocka_unit_test(test_print),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
