/** Lines over time, drawn by uPlot in the page's colours. */
import uPlot from "uplot";
import { html, useEffect, useRef } from "./ui.js";

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const WHEN = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DARK = matchMedia("(prefers-color-scheme: dark)");

/**
 * @param {object} props
 * @param {string} props.label for those who do not see it; the figures stand in a table too
 * @param {number[]} props.times seconds
 * @param {{ name: string, color: string, dash?: number[], values: number[] }[]} props.lines color: name of a custom property
 */
export function Chart({ label, times, lines }) {
  const place = useRef(null);
  useEffect(() => {
    let plot = null;
    // Held here: when the page is left, the reference is empty before the observer is told.
    const node = place.current;
    const draw = () => {
      plot?.destroy();
      // A canvas knows no custom properties, and light-dark() is resolved on a used colour alone.
      const probe = node.appendChild(document.createElement("i"));
      const color = (name) => {
        probe.style.color = `var(--${name})`;
        return getComputedStyle(probe).color;
      };
      const [text, grid] = [color("quiet"), color("line")];
      const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
      const options = {
        width: node.clientWidth,
        height: 280,
        cursor: { drag: { x: false, y: false } },
        scales: { y: { range: (_, __, max) => [0, Math.max(4, Math.ceil(max * 1.05))] } },
        // In the reader's habits; uPlot's own are American.
        axes: [
          {
            ...axis,
            space: 60,
            values: (_, splits) =>
              splits.map((second) => (new Date(second * 1000).getHours() === 0 ? DAY : CLOCK).format(second * 1000)),
          },
          {
            ...axis,
            incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000, 1_000_000],
          },
        ],
        series: [
          { label: "From", value: (_, second) => (second === null ? "–" : WHEN.format(second * 1000)) },
          ...lines.map((line) => ({
            label: line.name,
            stroke: color(line.color),
            width: 2,
            dash: line.dash,
            points: { show: times.length < 60, size: 6 },
          })),
        ],
      };
      probe.remove();
      plot = new uPlot(options, [times, ...lines.map((line) => line.values)], node);
    };
    draw();
    const resized = new ResizeObserver(
      () => node.isConnected && plot?.setSize({ width: node.clientWidth, height: 280 }),
    );
    resized.observe(node);
    DARK.addEventListener("change", draw);
    return () => {
      resized.disconnect();
      DARK.removeEventListener("change", draw);
      plot?.destroy();
    };
  }, [times, lines]);
  return html`<div class="chart" role="img" aria-label=${label} ref=${place}></div>`;
}

/** Bars by size, each with its number. @param {{ label: string, rows: { name: string, count: number, href?: string }[], others?: number }} props */
export function Bars({ label, rows, others = 0 }) {
  const most = Math.max(1, ...rows.map((row) => row.count), others);
  const all = others > 0 ? [...rows, { name: "others", count: others }] : rows;
  if (all.length === 0) return html`<p class="quiet">Nothing in this range.</p>`;
  return html`<ul class="bars" aria-label=${label}>
    ${all.map(
      (row) =>
        html`<li key=${row.name}>
          <span class="bar-name">${row.label ?? row.name}</span>
          <span class="bar" aria-hidden="true"><span style=${{ width: `${(row.count / most) * 100}%` }}></span></span>
          <span class="bar-count">${row.count.toLocaleString()}</span>
        </li>`,
    )}
  </ul>`;
}
