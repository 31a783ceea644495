/** Draws lines over time with uPlot, in the page's colours. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const HEIGHT = 280;
/** Possible intervals between the marks on the axis of counts. */
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000, 1_000_000];
/** Maximum number of points that are drawn as dots. A chart with more points has only the line. */
const MAX_POINTS = 60;

interface ChartLine {
  name: string;
  /** Name of a CSS custom property. */
  color: string;
  dash?: number[];
  values: number[];
}

interface Props {
  /** Label for people who cannot see the chart. A table has the same numbers. */
  label: string;
  /** Seconds since 1970, ascending; at least two. */
  times: number[];
  lines: readonly ChartLine[];
}

export function Chart({ label, times, lines }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const node = place.current;
    return node === null ? undefined : mount(node, { times, lines });
  }, [times, lines]);
  return <div class="chart" role="img" aria-label={label} ref={place} />;
}

/** Draws into `node`, and redraws when its width or the colour scheme changes. Returns a function that stops this. */
function mount(node: HTMLElement, data: Omit<Props, "label">): () => void {
  let plot: uPlot | null = null;
  const draw = (): void => {
    plot?.destroy();
    const values = data.lines.map((line) => line.values);
    plot = new uPlot(optionsOf(node, data), [data.times, ...values], node);
  };
  draw();
  const resized = new ResizeObserver(() => {
    if (node.isConnected) plot?.setSize({ width: node.clientWidth, height: HEIGHT });
  });
  resized.observe(node);
  // Do not do this at import time, so that `assent/console` can be imported outside of a browser.
  const darkScheme = matchMedia("(prefers-color-scheme: dark)");
  darkScheme.addEventListener("change", draw);
  return () => {
    resized.disconnect();
    darkScheme.removeEventListener("change", draw);
    plot?.destroy();
  };
}

function optionsOf(node: HTMLElement, { times, lines }: Omit<Props, "label">): uPlot.Options {
  const color = colorReader(node);
  const [text, grid] = [color("quiet"), color("line")];
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
  return {
    width: node.clientWidth,
    height: HEIGHT,
    // The legend has values only while a pointer is over the chart; the table below it has the numbers.
    legend: { live: false },
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_plot, _min, max) => [0, Math.max(4, Math.ceil(max * 1.05))] } },
    // uPlot's default formats are American.
    axes: [
      { ...axis, space: 60, values: (_plot, seconds) => seconds.map(formatTick) },
      { ...axis, incrs: STEPS },
    ],
    series: [
      {},
      ...lines.map((line) => ({
        label: line.name,
        stroke: color(line.color),
        width: 2,
        ...(line.dash === undefined ? {} : { dash: line.dash }),
        points: { show: times.length < MAX_POINTS, size: 6 },
      })),
    ],
  };
}

function formatTick(second: number): string {
  const ms = second * 1000;
  return (new Date(ms).getHours() === 0 ? DAY : CLOCK).format(ms);
}

/**
 * Returns a function that resolves custom properties to colours for a canvas. It reads the computed colour of an
 * element, because a canvas does not support light-dark().
 */
function colorReader(node: HTMLElement): (name: string) => string {
  return (name) => {
    const probe = node.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    const { color } = getComputedStyle(probe);
    probe.remove();
    return color;
  };
}
