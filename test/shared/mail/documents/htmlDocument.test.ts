import { expect, test } from 'bun:test'
import { readHtmlDocument } from '../../../../shared/mail/documents/htmlDocument.ts'

/** Holds the Russian word "Привет" in the charset KOI8-R. */
const KOI8 = Buffer.from([0xf0, 0xd2, 0xc9, 0xd7, 0xc5, 0xd4])
const page = (charset: string, text: Uint8Array) =>
  Buffer.concat([Buffer.from(`<meta charset="${charset}"><p>`), text, Buffer.from('</p>')])

test('an HTML file is read in the charset that it names', () => {
  expect(readHtmlDocument(page('koi8-r', KOI8)).text).toBe('Привет')
})

test.each(['utf-8', 'UTF8', 'no-such-charset'])(
  'an HTML file that names the charset %s but is valid UTF-8 is read as UTF-8',
  (charset) => {
    expect(readHtmlDocument(page(charset, Buffer.from('Привет'))).text).toBe('Привет')
  },
)

test('a byte order mark of an HTML file overrides the charset that the file names', () => {
  const bytes = page('windows-1252', Buffer.from('Привет'))
  const marked = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes])
  expect(readHtmlDocument(marked).text).toBe('Привет')
})

test('scripts and styles of an HTML file are not read, and text after an empty script in an SVG drawing is kept', () => {
  for (const [html, text] of [
    ['a<script>no</script>b', 'ab'],
    ['a<style>no</style>b', 'ab'],
    ['a<template>no</template>b', 'ab'],
    ['a<noscript>no</noscript>b', 'ab'],
    ['a<svg><script>no</script><style>no</style></svg>b', 'ab'],
    ['a<script>no', 'a'],
    ['a<svg><script/></svg>b', 'ab'],
    ['a<svg><style/></svg>b', 'ab'],
  ] as const) {
    expect([html, readHtmlDocument(Buffer.from(html)).text]).toEqual([html, text])
  }
})
