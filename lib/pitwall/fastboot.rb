# frozen_string_literal: true

# `require "pitwall/fastboot"` in config/boot.rb, or RUBYOPT=-rpitwall/fastboot (doc/fastboot.md). It starts with its
# defaults. For options: require "pitwall/fastboot/setup", and call Pitwall::Fastboot.setup.
#
# RubyGems and then Bundler may choose two versions of this gem. The version loaded first stays in use.
require_relative "fastboot/setup" unless defined?(Pitwall::Fastboot.setup)

Pitwall::Fastboot.setup
