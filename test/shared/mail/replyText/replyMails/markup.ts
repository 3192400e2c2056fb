/**
 * Holds test replies with HTML as many programs write it: containers, horizontal rules, tables, and markup without
 * class or id.
 */
import type { ReplyMail } from './build.ts'

type Row = [id: string, html: string, expected: string, ...alt: string[]]

const ASK = '<p>Which door shall we use?</p><p>Laura</p>'
const ANSWER = 'The yard door, please. From Monday the front is closed.'
const HEAD =
  '<b>From:</b> Laura Whitfield &lt;laura@print.example&gt;<br><b>Sent:</b> Tuesday, March 3, 2026 9:14 AM<br><b>To:</b> agent@inbox.example<br><b>Subject:</b> Door'
const WROTE =
  'On Tue, Mar 3, 2026 at 9:14 AM, Laura Whitfield &lt;<a href="mailto:laura@print.example">laura@print.example</a>&gt; wrote:'

const core: Row[] = [
  [
    'roundcube',
    `<html><body><div>${ANSWER}</div><p id="reply-intro">On 2026-03-03 09:14, Laura Whitfield wrote:</p><blockquote type="cite" style="padding: 0 0.4em; border-left: #1010ff 2px solid; margin: 0"><div id="replybody1">${ASK}</div></blockquote></body></html>`,
    ANSWER,
  ],
  [
    'zimbra',
    `<html><body><div style="font-family: arial"><div>${ANSWER}</div><div><br></div><hr id="zwchr" data-marker="__DIVIDER__"><div data-marker="__HEADERS__"><b>From: </b>"Laura Whitfield" &lt;laura@print.example&gt;<br><b>To: </b>agent@inbox.example<br><b>Sent: </b>Tuesday, 3 March, 2026 09:14:00<br><b>Subject: </b>Door<br></div><div data-marker="__QUOTED_TEXT__">${ASK}</div></div></body></html>`,
    ANSWER,
  ],
  [
    'front',
    `<div><div>${ANSWER}</div><br><div class="front-signature">Owen Hale</div><blockquote type="cite" class="front-blockquote">On March 3, 2026, 9:14 AM GMT laura@print.example wrote:<br><br>${ASK}</blockquote></div>`,
    ANSWER,
  ],
  [
    'missive',
    `<div>${ANSWER}</div><div class="missive_quote">On March 3, 2026 at 9:14, Laura Whitfield &lt;laura@print.example&gt; wrote:<br><blockquote class="missive_quote">${ASK}</blockquote></div>`,
    ANSWER,
  ],
  [
    'emclient',
    `<html><body><div>${ANSWER}</div><div><br></div><div>------ Original Message ------</div><div>From "Laura Whitfield" &lt;laura@print.example&gt;</div><div>To agent@inbox.example</div><div>Date 3/3/2026 9:14:00 AM</div><div>Subject Door</div><div><br></div><div id="x81"><blockquote cite="81@x" type="cite" class="cite2">${ASK}</blockquote></div></body></html>`,
    ANSWER,
  ],
  [
    'tuta',
    `<div>${ANSWER}<br><br>-- <br>Secured with Tuta Mail:<br>https://tuta.com<br><br><br>Mar 3, 2026, 09:14 by laura@print.example:<br><blockquote class="tutanota_quote" style="border-left: 1px solid #93A3B8; padding-left: 10px; margin-left: 5px;">${ASK}</blockquote></div>`,
    ANSWER,
  ],
  [
    'hotmail-old',
    `<html><body class="hmmessage"><div dir="ltr">${ANSWER}<br><br><div><hr id="stopSpelling">From: laura@print.example<br>To: agent@inbox.example<br>Subject: Door<br>Date: Tue, 3 Mar 2026 09:14:00 +0000<br><br>${ASK}</div></div></body></html>`,
    ANSWER,
  ],
  [
    'windows-mail',
    `<html><body><div style="font-family: Calibri;"><div>${ANSWER}</div><div><br></div><div>Sent from <a href="https://go.microsoft.com/fwlink/?LinkId=550986">Mail</a> for Windows</div><div><br></div><div style="mso-element:para-border-div;border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0in 0in 0in"><p style="border:none;padding:0in"><b>From: </b><a href="mailto:laura@print.example">Laura Whitfield</a><br><b>Sent: </b>Tuesday, March 3, 2026 9:14 AM<br><b>To: </b>Owen<br><b>Subject: </b>Door</p></div>${ASK}</div></body></html>`,
    ANSWER,
  ],
  [
    'outlook-each-line',
    `<html><body><p>${ANSWER}</p><p>&nbsp;</p><p><b><span lang="DE">Von:</span></b><span lang="DE"> Katrin Vogel &lt;k@vogel.example&gt;</span></p><p><b>Gesendet:</b> Dienstag, 3. März 2026 09:14</p><p><b>An:</b> agent@inbox.example</p><p><b>Betreff:</b> Tür</p><p>&nbsp;</p>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'outlook-table',
    `<html><body><div>${ANSWER}</div><hr><table><tr><td><b>From:</b></td><td>Laura Whitfield &lt;laura@print.example&gt;</td></tr><tr><td><b>Sent:</b></td><td>Tuesday, March 3, 2026 9:14 AM</td></tr><tr><td><b>To:</b></td><td>agent@inbox.example</td></tr><tr><td><b>Subject:</b></td><td>Door</td></tr></table>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'outlook-font',
    `<html><body><font face="Calibri">${ANSWER}</font><br><br><font size="2" face="Tahoma">${HEAD}</font><br><br>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'outlook-rule-only',
    `<html><body><div>${ANSWER}</div><hr>${HEAD}<br><br>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'notes',
    `<html><body><font size="2" face="sans-serif">${ANSWER}</font><br><br><br><table width="100%"><tr><td><font size="1" color="#5f5f5f">From: </font></td><td><font size="1">Laura Whitfield/Leeds/Harbour</font></td></tr><tr><td><font size="1" color="#5f5f5f">To: </font></td><td><font size="1">agent@inbox.example</font></td></tr><tr><td><font size="1" color="#5f5f5f">Date: </font></td><td><font size="1">03/03/2026 09:14</font></td></tr><tr><td><font size="1" color="#5f5f5f">Subject: </font></td><td><font size="1">Door</font></td></tr></table><hr noshade>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'attribution-link',
    `<div>${ANSWER}</div><div><br></div><div>${WROTE}</div><div><br></div><div>${ASK}</div>`,
    ANSWER,
  ],
  [
    'attribution-split',
    `<div>${ANSWER}</div><br><div><span>On Tue, Mar 3, 2026</span> at <span>9:14 AM</span> <b>Laura Whitfield</b> <span>&lt;laura@print.example&gt;</span><br>wrote:</div><blockquote>${ASK}</blockquote>`,
    ANSWER,
  ],
  [
    'quote-only-style',
    `<div>${ANSWER}</div><div style="border-left: 2px solid #ccc; padding-left: 8px">${WROTE}<br>${ASK}</div>`,
    ANSWER,
  ],
  [
    'bottom-unnamed',
    `<html><body><div>${WROTE}</div><blockquote>${ASK}</blockquote><div>${ANSWER}</div></body></html>`,
    ANSWER,
  ],
  [
    'bottom-gmail',
    `<div dir="ltr"><br><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${WROTE}<br></div><blockquote class="gmail_quote">${ASK}</blockquote><div>${ANSWER}</div></div></div>`,
    ANSWER,
  ],
  [
    'ticket-layout',
    `<table width="600"><tr><td><p>${ANSWER}</p></td></tr><tr><td><div style="color:#b5b5b5">##- Please type your reply above this line -##</div><p>Your request (5521) has been updated.</p></td></tr></table>`,
    ANSWER,
  ],
  [
    'mailbird',
    `<div>${ANSWER}</div><div class="mb_sig"></div><blockquote class="history_container" type="cite" style="border-left-style:solid;border-width:1px; margin-top:20px; margin-left:0px;padding-left:10px;"><p style="color: #AAAAAA; margin-top: 10px;">On 03/03/2026 09:14:00, Laura Whitfield &lt;laura@print.example&gt; wrote:</p><div>${ASK}</div></blockquote>`,
    ANSWER,
  ],
  [
    'evolution',
    `<html><body><div>${ANSWER}</div><div><br></div><div>-----Original Message-----</div><div><b>From</b>: Laura Whitfield &lt;laura@print.example&gt;</div><div><b>To</b>: agent@inbox.example</div><div><b>Subject</b>: Door</div><div><b>Date</b>: Tue, 03 Mar 2026 09:14:00 +0000</div><div><br></div>${ASK}</body></html>`,
    ANSWER,
  ],
  [
    'ox',
    `<!doctype html><html><body><div class="default-style">${ANSWER}</div><blockquote type="cite"><div>Laura Whitfield &lt;laura@print.example&gt; hat am 03.03.2026 09:14 CET geschrieben:</div><div><br></div>${ASK}</blockquote></body></html>`,
    ANSWER,
  ],
  [
    'netease',
    `<div style="line-height:1.7;color:#000000;font-size:14px"><div>${ANSWER}</div><br><br><div style="position:relative;zoom:1"></div><pre>At 2026-03-03 09:14:00, "Laura" &lt;laura@print.example&gt; wrote:</pre><blockquote id="isReplyContent" style="PADDING-LEFT: 1ex; MARGIN: 0px 0px 0px 0.8ex; BORDER-LEFT: #ccc 1px solid">${ASK}</blockquote></div>`,
    ANSWER,
  ],
  [
    'foxmail',
    `<html><body><div>${ANSWER}</div><div><br></div><hr style="width: 210px; height: 1px;" align="left"><div><span><div>Owen</div></span></div><blockquote style="margin-Top: 0px; margin-Bottom: 0px; margin-Left: 0.5em"><div>&nbsp;</div><div style="border:none;border-top:solid #B5C4DF 1.0pt;padding:3.0pt 0cm 0cm 0cm"><div style="background:#efefef;"><div><b>From:</b>&nbsp;<a href="mailto:laura@print.example">Laura</a></div><div><b>Date:</b>&nbsp;2026-03-03&nbsp;09:14</div><div><b>To:</b>&nbsp;agent</div><div><b>Subject:</b>&nbsp;Door</div></div></div>${ASK}</blockquote></body></html>`,
    ANSWER,
    `${ANSWER}\n\nOwen`,
  ],
  [
    'master',
    `<div id="contentDescription">${ANSWER}</div><div class="ne-mail-quote"><table><tr><td><div>---- Replied Message ----</div></td></tr><tr><td>From</td><td>Laura&lt;laura@print.example&gt;</td></tr><tr><td>Date</td><td>03/03/2026 09:14</td></tr><tr><td>To</td><td>agent@inbox.example</td></tr><tr><td>Subject</td><td>Door</td></tr></table>${ASK}</div>`,
    ANSWER,
  ],
  [
    'lark',
    `<div>${ANSWER}</div><div id="lark-mail-quote-81" class="history-quote-wrapper"><div class="lark-mail-quote"><div style="padding: 12px; background: rgb(245, 246, 247);">From: "Laura"&lt;laura@print.example&gt;<br>Date: Tue, Mar 3, 2026, 09:14<br>Subject: Door<br>To: agent@inbox.example</div>${ASK}</div></div>`,
    ANSWER,
  ],
  [
    'intercom',
    `<p>${ANSWER}</p><p>--<br>Laura from Harbour Print wrote:</p><div class="intercom-quoted">${ASK}</div>`,
    ANSWER,
    `${ANSWER}\n\n--\nLaura from Harbour Print wrote:`,
  ],
  [
    'plain-in-pre',
    `<html><body><pre>${ANSWER}\n\nOn 3/3/2026 9:14 AM, Laura Whitfield wrote:\n&gt; Which door shall we use?\n&gt; Laura\n</pre></body></html>`,
    ANSWER,
  ],
  [
    'marks-in-divs',
    `<div>${ANSWER}</div><div><br></div><div>On 3/3/2026 9:14 AM, Laura Whitfield wrote:</div><div>&gt; Which door shall we use?</div><div>&gt; Laura</div>`,
    ANSWER,
  ],
  [
    'signature-dashes',
    `<div>${ANSWER}</div><div><br></div><div>-- </div><div>Owen Hale</div><div>Office Ltd</div>`,
    ANSWER,
  ],
  [
    'signature-class',
    `<div>${ANSWER}</div><div class="signature"><p>Owen Hale</p><p>Office Ltd</p></div>`,
    ANSWER,
  ],
  [
    'yahoo-android',
    `<p dir="ltr">${ANSWER}</p><p><a href="https://mail.onelink.me/107872968">Sent from Yahoo Mail on Android</a></p><blockquote style="margin: 0 0 20px 0;"><div style="font-family:Roboto, sans-serif; color:#6D00F6;"><div>On Tue, Mar 3, 2026 at 9:14 AM, Laura</div><div>&lt;laura@print.example&gt; wrote:</div></div>${ASK}</blockquote>`,
    ANSWER,
  ],
]

const policy: Row[] = [
  [
    'forward-outlook',
    `<html><body><div>Please answer her.</div><hr><div id="divRplyFwdMsg">${HEAD.replace('Door', 'FW: Door')}</div><div>Hello</div></body></html>`,
    'Please answer her.',
    'Please answer her.\n\nFrom: Laura Whitfield <laura@print.example>\nSent: Tuesday, March 3, 2026 9:14 AM\nTo: agent@inbox.example\nSubject: FW: Door\n\nHello',
  ],
  [
    'table-answer',
    `<table><tr><td>Shelf</td><td>6</td></tr><tr><td>Lamp</td><td>2</td></tr></table><div>${HEAD}</div>${ASK}`,
    'Shelf 6\nLamp 2',
    'Shelf | 6\nLamp | 2',
  ],
  [
    'two-quotes-own',
    `<p>The rule says:</p><blockquote><p>Doors stay shut.</p></blockquote><p>So we use the yard.</p><div class="gmail_quote"><div class="gmail_attr">${WROTE}</div><blockquote class="gmail_quote">${ASK}</blockquote></div>`,
    'The rule says:\n\nDoors stay shut.\n\nSo we use the yard.',
    'The rule says:\n\n> Doors stay shut.\n\nSo we use the yard.',
    'The rule says:\n\nSo we use the yard.',
  ],
]

const row =
  (tier: ReplyMail['tier']) =>
  ([id, html, expected, ...alt]: Row): ReplyMail => ({
    id: `markup-${id}`,
    html,
    expected,
    ...(alt.length > 0 ? { alt } : {}),
    tier,
  })

export const markup: ReplyMail[] = [...core.map(row('core')), ...policy.map(row('policy'))]
