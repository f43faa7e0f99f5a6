/** What docs/assets/scripts/book.js gives to the other scripts. */
interface Window {
  book: Book;
}

declare const book: Book;

/** The theme's, for what stays on the reader's device. */
declare function __md_get(key: string): any;
declare function __md_set(key: string, value: unknown): void;

interface Book {
  /** The site's root. */
  base: URL;
  /** Load a script of the site once. */
  load(path: string): Promise<void>;
  /** What an example returned when the book was built. */
  values(example: string): Promise<any>;
  arrive(example: string, given: any): void;
  widget(name: string, start: (element: HTMLElement, values: any, language: string) => void): void;
  replaces(element: HTMLElement): Element | null;
  /** There once assets/scripts/widgets/attention-viewer.js is loaded. */
  attentionViewer(
    element: HTMLElement,
    data: ViewedAttention,
    language?: string,
  ): { update(data: ViewedAttention): void };
}
