/**
 * Builds HTML elements from data. Each text becomes a text node, so that the browser never parses third-party text as
 * markup.
 */

export type Child = Node | string | number | null | undefined | false | readonly Child[]

type Listeners = {
  [Name in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Name]) => void
}
type Attributes = Record<string, string | number | boolean | null | undefined | Listeners> & {
  on?: Listeners
}

const SVG = 'http://www.w3.org/2000/svg'

/**
 * Matches the addresses to which a link in the console may lead: other pages of the console, and the API documentation.
 * The console shows a third-party URL as text, and not as a link.
 */
const OWN_LINK = /^(#\/|\/docs$)/

/** Makes one HTML element. The element gets no attribute for a value of `null`, `undefined` or `false`. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children)
}

/** Makes one SVG element. */
export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS(SVG, tag), attributes, children)
}

function fill<Made extends Element>(
  element: Made,
  attributes: Attributes,
  children: Child[],
): Made {
  const { on, ...plain } = attributes
  for (const [name, value] of Object.entries(plain)) {
    if (value === null || value === undefined || value === false) continue
    if (name === 'href' && !OWN_LINK.test(String(value))) throw new Error(`no link: ${value}`)
    element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const [name, listener] of Object.entries(on ?? {})) {
    element.addEventListener(name, listener as EventListener)
  }
  element.append(...nodes(children))
  return element
}

function nodes(children: readonly Child[]): (Node | string)[] {
  return children.flatMap((child): (Node | string)[] => {
    if (child === null || child === undefined || child === false) return []
    if (Array.isArray(child)) return nodes(child)
    return [child instanceof Node ? child : String(child)]
  })
}

/**
 * Replaces the content of an element, and then restores the focus, the open `details` elements and the scroll position.
 * With the attribute `data-keep`, the console finds an element again after it has redrawn the page.
 */
export function replaceContent(root: HTMLElement, ...children: Child[]): void {
  const focused = root.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).closest<HTMLElement>('[data-keep]')?.dataset.keep
    : undefined
  const open = new Set(
    [...root.querySelectorAll<HTMLElement>('details[open][data-keep]')].map(
      ({ dataset }) => dataset.keep,
    ),
  )
  root.replaceChildren(...nodes(children))
  for (const kept of root.querySelectorAll<HTMLElement>('[data-keep]')) {
    if (kept instanceof HTMLDetailsElement && open.has(kept.dataset.keep)) kept.open = true
    if (focused !== undefined && kept.dataset.keep === focused) {
      const target = kept.matches('details') ? kept.querySelector('summary') : kept
      target?.focus({ preventScroll: true })
    }
  }
}
