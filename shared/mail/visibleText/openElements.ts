/**
 * Holds the open elements of HTML, the innermost last. The class also counts the open elements of each name. Therefore
 * an end tag without a start tag costs one look-up, and not one step for each open element.
 */
export class OpenElements<Element extends { name: string }> {
  readonly all: Element[]
  readonly #counts = new Map<string, number>()

  constructor(...roots: Element[]) {
    this.all = roots
  }

  get top(): Element | undefined {
    return this.all.at(-1)
  }

  push(element: Element): void {
    this.all.push(element)
    this.#counts.set(element.name, this.#count(element.name) + 1)
  }

  /** Closes the innermost element. @returns the name of the closed element, or undefined if no element is open. */
  pop(): string | undefined {
    const name = this.all.pop()?.name
    if (name !== undefined) this.#counts.set(name, this.#count(name) - 1)
    return name
  }

  /**
   * Closes the innermost open element of the given name, and all elements inside it. An end tag without a start tag
   * closes nothing.
   */
  close(name: string): void {
    if (this.#count(name) > 0) while (this.pop() !== name);
  }

  #count(name: string): number {
    return this.#counts.get(name) ?? 0
  }
}
