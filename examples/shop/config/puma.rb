# Workers, threads and port come from the command line:
#   puma -w 2 -t 4:4 -p 9292
environment ENV.fetch("RAILS_ENV", "production")
preload_app!
