/** Test vectors: a log of eight leaves, and the proof of its leaf 5. The seed of the log's key is the bytes 0 to 31. */
export const VKEY = "example.com/decisions+d0c41141+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4";
export const CHECKPOINT = `example.com/decisions
8
XcnaeacGWamtVZy3Ad7ZoqudgjqtL0lgz+Nw7/RgQyg=

\u2014 example.com/decisions 0MQRQfp3mfVfQ3qTXINWj805cLi29egbg/WTh1Dzve0j1EA67UxTmQEgWSXVu9vGPnxe9k6wM3CxfBLLLzm8rrAwggw=
`;
export const PROOF = `c2sp.org/tlog-proof@v1
index 5
vBoGQ7EuTS18d5GPROD095qDi2z57FtcKD4fTYhZnms=
yoVOoSjtBQtBs1/8G4e46yveRh6eO1WW7Oa51ZdaCuA=
037kGJdt2VdTwcc4Yrk5j6Kiz5tP8P3+izDNlSCWFLc=

${CHECKPOINT}`;
