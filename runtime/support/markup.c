/* HTML pages and the heads of SVG pictures. */
#include "runtime/support/markup.h"
#include "runtime/support/utf8.h"

static const char page_style[] =
	"body{font:14px/1.45 sans-serif;color:#222;max-width:1120px;"
	"margin:24px auto;padding:0 16px}\n"
	"h1{font-size:22px}h2{font-size:17px;margin-top:32px}\n"
	"table{border-collapse:collapse}\n"
	"th,td{padding:2px 12px 2px 0;text-align:left;vertical-align:top}\n"
	"th{font-weight:600;border-bottom:1px solid #ccc}\n"
	".n{text-align:right;white-space:nowrap}\n"
	"i{display:inline-block;width:11px;height:11px;margin:1px}\n"
	"td.cells{line-height:12px}\n"
	"span{white-space:nowrap;margin-right:14px}\n"
	"svg{max-width:100%;height:auto}\n";

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

static void
put_heading(const char *name, const char *what, const char *tag, FILE *out)
{
	fprintf(out, "<%s>", tag);
	markup_text(name, out);
	fprintf(out, ": %s</%s>\n", what, tag);
}

void
markup_page(const char *name, const char *what, const char *style, FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset="
	      "\"utf-8\"/>\n", out);
	put_heading(name, what, "title", out);
	fprintf(out, "<style>\n%s%s</style>\n</head>\n<body>\n", page_style,
	        style);
	put_heading(name, what, "h1", out);
}

void
markup_page_end(FILE *out)
{
	fputs("</body>\n</html>\n", out);
}

void
markup_picture(const char *title, int width, int height, FILE *out)
{
	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
	        "height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" font-family="
	        "\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n<title>",
	        width, height, width, height);
	markup_text(title, out);
	fputs("</title>\n", out);
}
