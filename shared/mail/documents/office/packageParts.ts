import { DocumentError } from '../document.ts'
import { type Attributes, attributeOf, readXml, type XmlVisitor } from './xml.ts'
import type { ZipArchive } from './zipArchive.ts'

/**
 * Describes a relation of an Office file, with which one part of the file refers to another part (ECMA-376 part 2,
 * §9.3).
 */
export type Relation = { type: string; target: string; isExternal: boolean }

/** Returns the relations of a part of an Office file, in a map by relation id. */
export function relationsOf(archive: ZipArchive, part: string): Map<string, Relation> {
  const cut = part.lastIndexOf('/') + 1
  const folder = part.slice(0, cut)
  const found = new Map<string, Relation>()
  readPart(archive, `${folder}_rels/${part.slice(cut)}.rels`, {
    open(name, attributes) {
      if (name !== 'Relationship') return
      const isExternal = attributes.TargetMode === 'External'
      const target = attributes.Target ?? ''
      found.set(attributes.Id ?? '', {
        type: (attributes.Type ?? '').split('/').at(-1) ?? '',
        target: isExternal ? target : resolve(folder, target),
        isExternal,
      })
    },
  })
  return found
}

/** Returns the parts of an Office file to which a given part refers by relations of one type. */
export const targetsOf = (relations: ReadonlyMap<string, Relation>, type: string): string[] =>
  [...relations.values()].flatMap((one) => (one.type === type && !one.isExternal ? one.target : []))

/** Reads a part of an office file, if the archive has the part. */
export function readPart(archive: ZipArchive, name: string, visitor: XmlVisitor): boolean {
  const bytes = archive.read(name)
  if (bytes === null) return false
  readXml(bytes, visitor)
  return true
}

/** Reads a part that an office file must have. @throws {DocumentError} if the archive lacks the part. */
export function readMainPart(archive: ZipArchive, name: string, visitor: XmlVisitor): void {
  if (!readPart(archive, name, visitor)) throw new DocumentError('malformed')
}

/** Tells whether a part of an office file has text in elements with a given name, such as the text of comments. */
export function holdsWords(archive: ZipArchive, part: string, element: string): boolean {
  let depth = 0
  let isFound = false
  readPart(archive, part, {
    open: (name) => void (name === element && depth++),
    close: (name) => void (name === element && depth--),
    text(text) {
      isFound ||= depth > 0 && /\p{L}/u.test(text)
    },
    isDone: () => isFound,
  })
  return isFound
}

/**
 * Tells whether a switch (an XML element such as `<w:vanish/>`) of a Word style is on. Without a value, the switch is
 * on. The values `0`, `false`, `off` and `none` turn it off.
 */
export const isOn = (attributes: Attributes, name = 'val'): boolean =>
  !['0', 'false', 'off', 'none'].includes(attributeOf(attributes, name) ?? '1')

function resolve(folder: string, target: string): string {
  if (target.startsWith('/')) return target.slice(1)
  const path: string[] = []
  for (const step of `${folder}${target}`.split('/')) {
    if (step === '..') path.pop()
    else if (step !== '.') path.push(step)
  }
  return path.join('/')
}
