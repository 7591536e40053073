#include "passes/report/markup.h"
#include "runtime/support/utf8.h"

/* Bytes of the character at s, 0 if it is none that XML allows. */
static int
char_length(const unsigned char *s)
{
	int n = utf8_length(s);

	if ((n == 1 && (*s < ' ' || *s == 0x7f))
	    || (n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe))
		return 0;
	return n;
}

void
markup_text(const char *text, FILE *out)
{
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		int n = char_length(s);

		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '>')
			fputs("&gt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else if (*s == '"')
			fputs("&quot;", out);
		else if (n)
			fwrite(s, 1, (size_t)n, out);
		else
			fputs("?", out);
		s += n ? n : 1;
	}
}
