/** Lists text fragments from which the test that counts steps builds texts that resemble untrusted texts. */
import type { Grammar } from './shapes.ts'

/**
 * Parses the text form of a grammar. The grammar lists the tokens from which test texts are made. The character ¦
 * separates the tokens. In a nest (an opening text with its closing text), the character … stands between the two
 * texts.
 */
const grammar = (tokens: readonly string[], nests: string): Grammar => ({
  tokens: tokens.join('¦').split('¦'),
  nests: nests.split('¦').map((nest) => nest.split('…') as [string, string]),
})

export const TEXT: Grammar = grammar(
  [
    "a¦ ¦\t¦\n¦\r¦\r\n¦\n\n¦0¦>¦> ¦>\n¦-¦--¦-- \n¦_¦=¦*¦#¦.¦,¦;¦:¦!¦?¦(¦[¦<¦@¦+¦/¦\\¦|¦'",
    '"¦`¦&¦%¦~¦$¦\u00a0¦\u200b¦\ufe0f¦\u{e0041}¦🏴¦\u202e¦\u0301¦é¦ß¦ж¦中¦あ¦ก¦ﷺ¦\ud800',
    '\ufffd¦\0¦A¦1¦12¦1234 ¦482 913¦AB12-¦a-b-¦abc-def-ghi-¦code ¦Your code is 482913. ',
    'code: 482913\n¦https://¦http://a.b/c?d=e ¦www.a.b ¦a@b.c ¦On ',
    'On Mon, 5 Jan 2026 at 09:30, Ada <a@b.c> wrote:\n¦ wrote:\n',
    'Am 5.1.2026 schrieb Ada:\n¦Le 5 ¦From: a@b.c\n¦From:¦Sent: ¦To: b@c.d\n¦Subject: Re: ',
    '*From:* a ¦-----Original Message-----\n¦Sent from my ¦Best regards,\n¦unsubscribe ',
    '\nOn Mon, 2 Mar 2026 9:14 A <a@b¦AnnSent: 9:14To: ¦_____¦. 2.3.2026 9:14 A B <a@b.c>¦CONFIDENTIAL ¦5.1.1 ¦550 ¦\n> ¦10:30 ¦AM ',
  ],
  '(…)¦[…]¦<…>¦"…"¦> …\n¦{…}¦*…*',
)

export const HTML: Grammar = grammar(
  [
    '<¦>¦</¦<a¦<a ¦<p>¦</p>¦<br>¦<div>¦</div>¦<b>¦</b>¦<i¦<td>¦<tr>¦<table>¦</table>¦<li>',
    '<ul>¦<pre>¦<img alt="¦<img src=x>¦<style>¦</style>¦<script>¦<title>¦<textarea>¦<!--',
    '-->¦--¦<!¦<![CDATA[¦]]>¦<?¦&¦&#¦&#x¦&amp;¦&amp¦&#65;¦"¦\'¦=¦ a="b"¦ a¦ style="',
    'style="display:none"¦ class="a b"¦/¦ ¦\n¦x¦<p style="color:red">',
    '<a href="https://a.b/c">d</a>¦<a href="¦ href=¦href = "x"¦<h1>¦<blockquote>',
    '<div class="gmail_quote">¦<hr>¦<option>¦<p>x¦\0¦é¦<svg>¦<template>¦<dl><dt><dd>¦中',
    '<a ><a >¦<div style="display:none">x¦<font color=white>¦<span class="a">¦<td style="',
    '</x>¦<x/>',
  ],
  '<div>…</div>¦<b>…</b>¦<table><tr><td>…</td></tr></table>¦<blockquote>…</blockquote>¦<ul><li>…</li></ul>¦<p>…</p>¦<style>…</style>¦<a href="https://a.b">…</a>¦<!--…-->¦<svg>…</svg>¦<span style="color:red">…</span>¦<pre>…</pre>',
)

export const CSS: Grammar = grammar(
  [
    'a¦a{¦}¦{¦;¦:¦a{b:c}¦.a{display:none}¦#a{}¦.a .b{opacity:0}¦,¦>¦+¦~¦*¦.a¦.a.b¦.a ¦/*',
    '*/¦/¦\\¦\\69 ¦\\0¦@media ¦@media screen{¦@import "¦"¦\'¦(¦)¦url(¦!important',
    '! important¦!¦display:none;¦color:¦rgb(¦1¦1,¦#fff¦ ¦\n¦color:rgb(1,2,3);¦font:',
    'font:1px a;¦left:-9px;¦-¦%¦calc(¦[a=b]¦:hover¦é¦<!--¦-->',
  ],
  '{…}¦(…)¦/*…*/¦@media a{…}¦a{…}¦"…"',
)

export const ADDRESSES: Grammar = grammar(
  [
    'a¦a@b.c¦a@b.c,¦a@b.c, ¦<a@b.c>¦A <a@b.c>, ¦"¦"a" <a@b.c>,¦\\¦\\"¦(¦)¦(a)¦,¦;¦:',
    'g:a@b.c;¦g:¦<¦>¦<>¦@¦.¦ ¦\t¦\r\n ¦=?utf-8?q?a?=¦=?utf-8?b?YQ==?=¦=?¦?=¦=¦é¦é@é.é,¦[¦]',
    "'¦+¦-¦a.¦a b ¦\0¦@b¦a@¦a@b,a@¦<a¦xn--",
  ],
  '(…)¦"…"¦<…>¦g:…;¦[…]¦=?utf-8?q?…?=',
)

export const HEADER: Grammar = grammar(
  [
    ...ADDRESSES.tokens,
    '\r\n¦\n¦X: y\r\n¦X: y\n¦X:\r\n ¦X¦x\r\n¦ x\r\n¦\r¦<a@b>¦<a@b> ¦name="¦; a=b¦; a*0=b',
    "; a*0*=utf-8''%41¦; a*1=b¦text/plain; ¦multipart/mixed; boundary=b¦Re: ¦Aw: ",
    'Re[2]: ¦Received: from a by b; c\r\n¦From: a@b.c\r\n¦Subject: =?utf-8?q?a?=\r\n¦%¦%41',
    '*¦=?x?q?=¦References: <a@b>\r\n¦Content-Type: text/plain\r\n¦DKIM-Signature: v=1; ',
    'To: a@b.c,\r\n ',
  ],
  '(…)¦"…"¦<…>¦g:…;¦[…]¦=?utf-8?q?…?=',
)

export const MIME: Grammar = grammar(
  [
    '\r\n¦\n¦\r¦--b\r\n¦--b--\r\n¦--b¦--¦-¦--b\r\n\r\n',
    '--b\r\nContent-Type: text/plain\r\n\r\nx\r\n',
    '--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n',
    '--b\r\nContent-Type: message/rfc822\r\n\r\n¦x¦ ',
    '--b\r\nContent-Type: text/html\r\n\r\n<p>x\r\n',
    '--b\r\nContent-Disposition: attachment; filename=a\r\n\r\nx\r\n¦=¦=41¦=\r\n¦=3D¦=?',
    'YQ==¦YWJj¦YWJj\r\n¦x\r\n¦x\n¦--b\r\nX: y\r\n¦--b\r\nX\r\n¦.',
    '--b\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj\r\n',
    '--b\r\nContent-Type: text/calendar\r\n\r\nx\r\n¦é¦\0',
    '--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41=\r\n¦begin 644 a\r\n',
    '>From ¦From ¦>',
    '--b\r\nContent-Type: message/delivery-status\r\n\r\nFinal-Recipient: rfc822; a@b.c\r\nAction: failed\r\nStatus: 5.1.1\r\n',
    '--b\r\nContent-Type: text/plain; charset=utf-16; format=flowed; delsp=yes\r\n\r\nx \r\n',
    'x \r\n¦> x \r\n',
  ],
  '--b\r\nContent-Type: message/rfc822\r\n\r\n…--b--\r\n',
)

export const URL_TEXT: Grammar = grammar(
  [
    'a¦/¦//¦.¦..¦/..¦./¦%¦%2¦%41¦%2e¦%25¦%25%32%35¦?¦?a=b¦&¦&a=b¦=¦#¦@¦:¦https://',
    'https://a.b¦http://¦[¦]¦[::1]¦::¦0:¦127.¦1¦0¦\\¦ ¦\t¦{{¦{{a}}¦}}¦{¦{{ ¦é¦．¦xn--¦-¦*',
    '*.¦a.¦,¦;¦+¦\0¦中¦｡¦mcp://tool/a',
  ],
  '{{…}}¦[…]¦(…)¦/a…/..',
)

export const JSON_TEXT: Grammar = grammar(
  [
    '{¦}¦[¦]¦"¦:¦,¦\\¦\\"¦\\\\¦\\u0000¦\\ud800¦"a"¦"a":1,¦"a":¦1¦1,¦-¦0¦{}¦{},¦[],¦[1],',
    'null¦true,¦ ¦\n¦e¦.¦"{{a}}",¦{{a}}¦"{{¦\0¦é¦~¦/¦{"a":¦[[¦"__proto__":¦"payTo":',
    '"accepts":[¦a¦="¦&',
  ],
  '[…]¦{"a":…}¦{"a":[…]}¦"…"',
)

/**
 * Holds fragments of JSON Schemas and OpenAPI documents, from which the test that counts steps builds hostile texts.
 */
export const SCHEMA_TEXT: Grammar = grammar(
  [
    ...JSON_TEXT.tokens,
    '"type":"object",¦"type":[¦"enum":[¦"enum":["a"],¦"items":{¦"properties":{¦"required":["a"],¦"const":1,',
    '"$ref":"#/components/schemas/a",¦"components":{"schemas":{"a":{¦"paths":{"/a":{¦"get":{¦"parameters":[',
    '"openapi":"3.0.0",¦"info":{"input":{"type":"http"¦"additionalProperties":{¦"minLength":1,¦"a",¦{"a":1},',
  ],
  '[…]¦{"properties":{"a":…}}¦{"items":…}¦{"a":…}¦"…"',
)

export const ENCODED: Grammar = grammar(
  [
    'a¦A¦0¦1¦=¦==¦+¦/¦-¦_¦ ¦\n¦\r\n¦YWJj¦YQ¦%41¦%2541¦\\x41¦\\u0041¦&#65;¦&#x41;¦&amp;¦=41',
    '=\r\n¦41 ¦0x41,¦41:¦65,¦65 ,¦255¦\0¦a\0¦ÿ¦é¦\\¦%¦&¦&#¦\\u¦&amp;amp;¦%25¦%2525¦secret',
    'secre¦"¦中¦🙂¦61¦=3D¦\\\\¦&lt',
  ],
  '{…}¦&amp;…;¦%25…41',
)
