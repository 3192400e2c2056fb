import { type DocumentText, TextWriter } from './document.ts'
export function readRtf(_bytes: Uint8Array): DocumentText {
  return new TextWriter().done()
}
