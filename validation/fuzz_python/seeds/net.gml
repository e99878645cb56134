graph [
  node [ id 0 label "North" Longitude 0.0 Latitude 60.0 ]
  node [ id 1 label "South" Longitude 0.0 Latitude 51.0067 ]
  node [ id 2 label "South" ]
  edge [ source 0 target 1 LinkSpeedRaw 155000000.0 ]
  edge [ source 1 target 2 ]
]
